-- What it takes to make runs again, or why one cannot be. They end with the records of
-- their runs.

-- +goose Up
CREATE TABLE agent.recordings (
    execution_id UUID        PRIMARY KEY,
    tenant       TEXT        NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    missing      TEXT        NOT NULL, -- why there is no body; '' where there is one
    size         BIGINT      NOT NULL CHECK (size >= 0), -- of the body before it was compressed
    body         BYTEA       NOT NULL
);
ALTER TABLE agent.recordings ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed
CREATE INDEX idx_recordings_created ON agent.recordings (created_at);

-- +goose Down
DROP TABLE agent.recordings;
