-- +goose Up

-- API keys. The texts that their holders show are not here: hash is the SHA-256 of the
-- one that is good, old_hash that of the one before, which is good until old_until.
-- Rows stay when a key has ended, since records name it.
CREATE TABLE agent.api_keys (
    id           VARCHAR(16) PRIMARY KEY,
    name         VARCHAR(100) NOT NULL,
    tenant       VARCHAR(64) NOT NULL,
    scopes       TEXT NOT NULL, -- with spaces between them
    created_at   TIMESTAMPTZ NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   TIMESTAMPTZ, -- NULL: never
    rotated_at   TIMESTAMPTZ,
    revoked_at   TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ,
    hash         BYTEA NOT NULL CHECK (length(hash) = 32),
    old_hash     BYTEA CHECK (old_hash IS NULL OR length(old_hash) = 32),
    old_until    TIMESTAMPTZ,
    revision     BIGINT NOT NULL
);
CREATE INDEX idx_api_keys_created ON agent.api_keys (created_at, id);
CREATE INDEX idx_api_keys_tenant ON agent.api_keys (tenant, created_at, id);
CREATE UNIQUE INDEX uq_api_keys_revision ON agent.api_keys (revision);

-- How often keys were changed. Whoever changes one raises it first in the same
-- transaction, and keeps it locked to the end, so that revisions can be seen in their
-- order.
CREATE TABLE agent.api_key_changes (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL
);
INSERT INTO agent.api_key_changes (one, revision) VALUES (1, 0);

-- +goose Down
DROP TABLE agent.api_key_changes;
DROP TABLE agent.api_keys;
