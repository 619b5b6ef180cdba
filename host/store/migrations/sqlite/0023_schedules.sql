-- Calls that are made again and again: body is one as queued_calls has it. Times are microseconds since 1970, 0 for never.

-- +goose Up
CREATE TABLE schedules (
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    name       TEXT NOT NULL,
    cron       TEXT NOT NULL,
    time_zone  TEXT NOT NULL,
    missed     TEXT NOT NULL,
    body       BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    last_id    TEXT NOT NULL,
    skipped    TEXT NOT NULL,
    PRIMARY KEY (tenant, principal, name)
) STRICT;
CREATE INDEX idx_schedules_due ON schedules (tenant, principal, next_at);

-- +goose Down
DROP TABLE schedules;
