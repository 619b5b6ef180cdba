-- Addresses that are told when calls have ended, and what they are not told of yet: id is that of the execution. made_by is a
-- principal in JSON.

-- +goose Up
CREATE TABLE webhooks (
    tenant      TEXT NOT NULL,
    principal   TEXT NOT NULL,
    name        TEXT NOT NULL,
    url         TEXT NOT NULL,
    secret      BLOB NOT NULL,
    made_by     BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    last_status INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, name)
) STRICT;
CREATE TABLE deliveries (
    id        TEXT PRIMARY KEY,
    tenant    TEXT NOT NULL,
    principal TEXT NOT NULL,
    name      TEXT NOT NULL,
    attempts  INTEGER NOT NULL,
    next_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_deliveries_due ON deliveries (tenant, principal, next_at);

-- +goose Down
DROP TABLE deliveries;
DROP TABLE webhooks;
