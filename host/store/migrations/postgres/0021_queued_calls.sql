-- Calls that were accepted and wait for a place on a host: instance is the host that has taken one, '' of none.
-- A row goes when the beginning of its call is on record. body is JSON; bytes are what it counts for, in the
-- sums of its tenant, too.

-- +goose Up
CREATE TABLE agent.queued_calls (
    id             UUID PRIMARY KEY,
    tenant         TEXT NOT NULL,
    principal_id   TEXT NOT NULL,
    principal_type TEXT NOT NULL,
    skill_name     TEXT NOT NULL,
    script         TEXT NOT NULL DEFAULT '',
    session_id     TEXT NOT NULL DEFAULT '',
    trace_id       TEXT NOT NULL DEFAULT '',
    instance       TEXT NOT NULL DEFAULT '',
    created_at     TIMESTAMPTZ NOT NULL,
    bytes          BIGINT NOT NULL,
    body           BYTEA NOT NULL
);
CREATE INDEX idx_queued_calls_waiting ON agent.queued_calls (tenant, principal_id, id) WHERE instance = '';
CREATE INDEX idx_queued_calls_instance ON agent.queued_calls (instance) WHERE instance <> '';
CREATE TABLE agent.queued_sums (
    tenant TEXT   PRIMARY KEY,
    bytes  BIGINT NOT NULL,
    items  BIGINT NOT NULL
) WITH (fillfactor = 70);

-- +goose Down
DROP TABLE agent.queued_sums;
DROP TABLE agent.queued_calls;
