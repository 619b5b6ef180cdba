-- Addresses that are told when calls have ended, and what they are not told of yet: id is that of the execution. made_by is a
-- principal in JSON.

-- +goose Up
CREATE TABLE agent.webhooks (
    tenant      TEXT NOT NULL,
    principal   TEXT NOT NULL,
    name        TEXT NOT NULL,
    url         TEXT NOT NULL,
    secret      BYTEA NOT NULL,
    made_by     BYTEA NOT NULL,
    created_at  BIGINT NOT NULL,
    last_at     BIGINT NOT NULL,
    last_status BIGINT NOT NULL,
    PRIMARY KEY (tenant, principal, name)
);
CREATE TABLE agent.deliveries (
    id        UUID PRIMARY KEY,
    tenant    TEXT NOT NULL,
    principal TEXT NOT NULL,
    name      TEXT NOT NULL,
    attempts  BIGINT NOT NULL,
    next_at   BIGINT NOT NULL
);
CREATE INDEX idx_deliveries_due ON agent.deliveries (tenant, principal, next_at);

-- +goose Down
DROP TABLE agent.deliveries;
DROP TABLE agent.webhooks;
