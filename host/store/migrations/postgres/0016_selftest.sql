-- The report of the last whole self-test, as JSON, in one row.

-- +goose Up
CREATE TABLE agent.selftest (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    report TEXT NOT NULL
);

-- +goose Down
DROP TABLE agent.selftest;
