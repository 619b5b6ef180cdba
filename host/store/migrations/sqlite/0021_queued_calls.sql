-- Calls that were accepted and wait for a place on a host: instance is the host that has taken one, '' of none.
-- A row goes when the beginning of its call is on record. body is JSON; bytes are what it counts for, in the
-- sums of its tenant, too.

-- +goose Up
CREATE TABLE queued_calls (
    id             TEXT PRIMARY KEY NOT NULL,
    tenant         TEXT NOT NULL,
    principal_id   TEXT NOT NULL,
    principal_type TEXT NOT NULL,
    skill_name     TEXT NOT NULL,
    script         TEXT NOT NULL DEFAULT '',
    session_id     TEXT NOT NULL DEFAULT '',
    trace_id       TEXT NOT NULL DEFAULT '',
    instance       TEXT NOT NULL DEFAULT '',
    created_at     INTEGER NOT NULL,
    bytes          INTEGER NOT NULL,
    body           BLOB NOT NULL
) STRICT;
CREATE INDEX idx_queued_calls_waiting ON queued_calls (tenant, principal_id, id) WHERE instance = '';
CREATE INDEX idx_queued_calls_instance ON queued_calls (instance) WHERE instance <> '';
CREATE TABLE queued_sums (
    tenant TEXT PRIMARY KEY NOT NULL,
    bytes  INTEGER NOT NULL,
    items  INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE queued_sums;
DROP TABLE queued_calls;
