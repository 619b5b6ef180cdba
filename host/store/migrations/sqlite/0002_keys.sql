-- +goose Up

-- API keys. The texts that their holders show are not here: hash is the SHA-256 of the
-- one that is good, old_hash that of the one before, which is good until old_until.
-- Rows stay when a key has ended, since records name it.
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    scopes       TEXT NOT NULL, -- with spaces between them
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER, -- NULL: never
    rotated_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER,
    hash         BLOB NOT NULL CHECK (length(hash) = 32),
    old_hash     BLOB CHECK (old_hash IS NULL OR length(old_hash) = 32),
    old_until    INTEGER,
    revision     INTEGER NOT NULL
);
CREATE INDEX idx_api_keys_created ON api_keys (created_at, id);
CREATE INDEX idx_api_keys_tenant ON api_keys (tenant, created_at, id);
CREATE UNIQUE INDEX uq_api_keys_revision ON api_keys (revision);

-- How often keys were changed. Whoever changes one raises it first in the same
-- transaction, so that revisions can be seen in their order.
CREATE TABLE api_key_changes (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
);
INSERT INTO api_key_changes (one, revision) VALUES (1, 0);

-- +goose Down
DROP TABLE api_key_changes;
DROP TABLE api_keys;
