-- Large results and files stand in parts, so that no transaction writes much of one.

-- +goose Up
CREATE TABLE result_parts (
    id         TEXT    NOT NULL, -- that of results.parts
    part       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (id, part)
) STRICT;
ALTER TABLE results ADD COLUMN parts TEXT; -- NULL: body has all of it
CREATE INDEX idx_results_parts ON results (parts) WHERE parts IS NOT NULL;

-- +goose Down
DELETE FROM results WHERE parts IS NOT NULL;
UPDATE result_bytes SET bytes = (SELECT COALESCE(SUM(results.bytes), 0) FROM results WHERE results.tenant = result_bytes.tenant);
DROP INDEX idx_results_parts;
ALTER TABLE results DROP COLUMN parts;
DROP TABLE result_parts;
