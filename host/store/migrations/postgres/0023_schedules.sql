-- Calls that are made again and again: body is one as queued_calls has it. Times are microseconds since 1970, 0 for never.

-- +goose Up
CREATE TABLE agent.schedules (
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    name       TEXT NOT NULL,
    cron       TEXT NOT NULL,
    time_zone  TEXT NOT NULL,
    missed     TEXT NOT NULL,
    body       BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    last_at    BIGINT NOT NULL,
    last_id    TEXT NOT NULL,
    skipped    TEXT NOT NULL,
    PRIMARY KEY (tenant, principal, name)
);
CREATE INDEX idx_schedules_due ON agent.schedules (tenant, principal, next_at);

-- +goose Down
DROP TABLE agent.schedules;
