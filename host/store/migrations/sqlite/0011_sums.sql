-- What results and records of each tenant take: their bodies, the names of results, and
-- about 200 bytes for each row. The program counts, in the transaction that has the rows.

-- +goose Up
CREATE TABLE result_sums (
    tenant TEXT    PRIMARY KEY NOT NULL,
    bytes  INTEGER NOT NULL,
    items  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO result_sums SELECT tenant, SUM(bytes + octet_length(name) + 200), COUNT(*) FROM results GROUP BY tenant;
DROP TABLE result_bytes;
ALTER TABLE audit_heads ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE audit_heads SET bytes = (SELECT COALESCE(SUM(octet_length(body) + 200), 0) FROM audit_records WHERE audit_records.tenant = audit_heads.tenant);

-- +goose Down
ALTER TABLE audit_heads DROP COLUMN bytes;
CREATE TABLE result_bytes (
    tenant TEXT   PRIMARY KEY,
    bytes  INTEGER NOT NULL
);
INSERT INTO result_bytes SELECT tenant, SUM(bytes) FROM results GROUP BY tenant;
DROP TABLE result_sums;
