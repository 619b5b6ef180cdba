-- Large results and files stand in parts, so that no transaction writes much of one.

-- +goose Up
CREATE TABLE agent.result_parts (
    id         TEXT    NOT NULL, -- that of results.parts
    part       INTEGER NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    body       BYTEA NOT NULL,
    PRIMARY KEY (id, part)
);
ALTER TABLE agent.results ADD COLUMN parts TEXT; -- NULL: body has all of it
CREATE INDEX idx_results_parts ON agent.results (parts) WHERE parts IS NOT NULL;

-- +goose Down
DELETE FROM agent.results WHERE parts IS NOT NULL;
UPDATE agent.result_bytes SET bytes = (SELECT COALESCE(SUM(results.bytes), 0) FROM agent.results WHERE results.tenant = result_bytes.tenant);
DROP INDEX agent.idx_results_parts;
ALTER TABLE agent.results DROP COLUMN parts;
DROP TABLE agent.result_parts;
