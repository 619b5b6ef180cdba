-- +goose Up

-- What was used of limits: of a rate, when its bucket is full again, in nanoseconds since
-- 1970; of a day, calls and fuel. A row means nothing any more after ends_at.
CREATE TABLE quota_counters (
    id       TEXT PRIMARY KEY,
    until_ns INTEGER NOT NULL DEFAULT 0,
    calls    INTEGER NOT NULL DEFAULT 0,
    fuel     INTEGER NOT NULL DEFAULT 0,
    ends_at  INTEGER
) WITHOUT ROWID;
CREATE INDEX idx_quota_counters_ends ON quota_counters (ends_at);

-- +goose Down
DROP TABLE quota_counters;
