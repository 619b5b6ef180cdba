-- What results and records of each tenant take: their bodies, the names of results, and
-- about 200 bytes for each row. The program counts, in the transaction that has the rows.

-- +goose Up
CREATE TABLE agent.result_sums (
    tenant TEXT   PRIMARY KEY,
    bytes  BIGINT NOT NULL,
    items  BIGINT NOT NULL
) WITH (fillfactor = 70); -- rows are changed all the time: room for that on their own pages
INSERT INTO agent.result_sums SELECT tenant, SUM(bytes + octet_length(name) + 200), COUNT(*) FROM agent.results GROUP BY tenant;
DROP TABLE agent.result_bytes;
ALTER TABLE agent.audit_heads ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE agent.audit_heads SET bytes = (SELECT COALESCE(SUM(octet_length(body) + 200), 0) FROM agent.audit_records WHERE audit_records.tenant = audit_heads.tenant);

-- +goose Down
ALTER TABLE agent.audit_heads DROP COLUMN bytes;
CREATE TABLE agent.result_bytes (
    tenant TEXT   PRIMARY KEY,
    bytes  BIGINT NOT NULL
);
INSERT INTO agent.result_bytes SELECT tenant, SUM(bytes) FROM agent.results GROUP BY tenant;
DROP TABLE agent.result_sums;
