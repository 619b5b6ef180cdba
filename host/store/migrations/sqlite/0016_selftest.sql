-- The report of the last whole self-test, as JSON, in one row.

-- +goose Up
CREATE TABLE selftest (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    report TEXT NOT NULL
) STRICT;

-- +goose Down
DROP TABLE selftest;
