-- What runs left behind, for a while: the results of long calls (name '') and files; and
-- which executions somebody wants ended that another host runs.

-- +goose Up
CREATE TABLE agent.results (
    execution_id UUID        NOT NULL,
    name         TEXT        NOT NULL,
    tenant       TEXT        NOT NULL,
    bytes        BIGINT      NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    expires_at   TIMESTAMPTZ NOT NULL,
    body         BYTEA       NOT NULL,
    PRIMARY KEY (execution_id, name)
);
CREATE INDEX idx_results_tenant ON agent.results (tenant, expires_at);
CREATE INDEX idx_results_expires ON agent.results (expires_at);

CREATE TABLE agent.result_bytes (
    tenant TEXT   PRIMARY KEY,
    bytes  BIGINT NOT NULL
);

CREATE TABLE agent.cancellations (
    execution_id UUID        PRIMARY KEY,
    asked_at     TIMESTAMPTZ NOT NULL
);
CREATE INDEX idx_cancellations_asked ON agent.cancellations (asked_at);

-- +goose Down
DROP TABLE agent.cancellations;
DROP TABLE agent.result_bytes;
DROP TABLE agent.results;
