-- +goose Up

-- What was used of limits: of a rate, when its bucket is full again, in nanoseconds since
-- 1970; of a day, calls and fuel. A row means nothing any more after ends_at.
CREATE TABLE agent.quota_counters (
    id       TEXT PRIMARY KEY,
    until_ns BIGINT NOT NULL DEFAULT 0,
    calls    BIGINT NOT NULL DEFAULT 0,
    fuel     BIGINT NOT NULL DEFAULT 0,
    ends_at  TIMESTAMPTZ
) WITH (fillfactor = 70); -- rows are changed all the time: room for that on their own pages
CREATE INDEX idx_quota_counters_ends ON agent.quota_counters (ends_at);

-- +goose Down
DROP TABLE agent.quota_counters;
