-- What people allowed scripts. body is the approval as JSON; the other columns find it.

-- +goose Up
CREATE TABLE agent.approvals (
    id          TEXT PRIMARY KEY NOT NULL,
    asks        TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    skill       TEXT NOT NULL,
    state       TEXT NOT NULL,
    expires_at  TIMESTAMPTZ,
    approved_at TIMESTAMPTZ,
    body        TEXT NOT NULL
);
CREATE INDEX approvals_asks ON agent.approvals (asks, id);
CREATE INDEX approvals_tenant ON agent.approvals (tenant, state, id);
CREATE INDEX approvals_skill ON agent.approvals (tenant, skill, approved_at) WHERE approved_at IS NOT NULL;
INSERT INTO agent.revisions (topic, revision) VALUES ('approvals', 0) ON CONFLICT DO NOTHING; -- it stays below

-- +goose Down
DROP TABLE agent.approvals;
