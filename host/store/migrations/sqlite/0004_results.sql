-- What runs left behind, for a while: the results of long calls (name '') and files; and
-- which executions somebody wants ended that another host runs.

-- +goose Up
CREATE TABLE results (
    execution_id TEXT        NOT NULL,
    name         TEXT        NOT NULL,
    tenant       TEXT        NOT NULL,
    bytes        INTEGER     NOT NULL,
    created_at   INTEGER     NOT NULL,
    expires_at   INTEGER     NOT NULL,
    body         BLOB        NOT NULL,
    PRIMARY KEY (execution_id, name)
);
CREATE INDEX idx_results_tenant ON results (tenant, expires_at);
CREATE INDEX idx_results_expires ON results (expires_at);

CREATE TABLE result_bytes (
    tenant TEXT   PRIMARY KEY,
    bytes  INTEGER NOT NULL
);

CREATE TABLE cancellations (
    execution_id TEXT        PRIMARY KEY,
    asked_at     INTEGER     NOT NULL
);
CREATE INDEX idx_cancellations_asked ON cancellations (asked_at);

-- +goose Down
DROP TABLE cancellations;
DROP TABLE result_bytes;
DROP TABLE results;
