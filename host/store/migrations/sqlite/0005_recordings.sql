-- What it takes to make runs again, or why one cannot be. They end with the records of
-- their runs.

-- +goose Up
CREATE TABLE recordings (
    execution_id TEXT    PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    missing      TEXT    NOT NULL, -- why there is no body; '' where there is one
    size         INTEGER NOT NULL CHECK (size >= 0), -- of the body before it was compressed
    body         BLOB    NOT NULL
);
CREATE INDEX idx_recordings_created ON recordings (created_at);

-- +goose Down
DROP TABLE recordings;
