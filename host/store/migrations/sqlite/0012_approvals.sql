-- What people allowed scripts. body is the approval as JSON; the other columns find it.

-- +goose Up
CREATE TABLE approvals (
    id          TEXT PRIMARY KEY NOT NULL,
    asks        TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    skill       TEXT NOT NULL,
    state       TEXT NOT NULL,
    expires_at  INTEGER,
    approved_at INTEGER,
    body        TEXT NOT NULL
) STRICT;
CREATE INDEX approvals_asks ON approvals (asks, id);
CREATE INDEX approvals_tenant ON approvals (tenant, state, id);
CREATE INDEX approvals_skill ON approvals (tenant, skill, approved_at) WHERE approved_at IS NOT NULL;
INSERT INTO revisions (topic, revision) VALUES ('approvals', 0) ON CONFLICT DO NOTHING; -- it stays below

-- +goose Down
DROP TABLE approvals;
