-- Files that callers bring along to calls, by tenant and SHA-256: content names the parts of one. Times
-- are microseconds since 1970.

-- +goose Up
CREATE TABLE files (
    tenant     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    name       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    principal  TEXT NOT NULL,
    content    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT;
CREATE INDEX idx_files_expires_at ON files (expires_at);
CREATE UNIQUE INDEX uq_files_content ON files (content);
CREATE TABLE file_parts (
    content    TEXT NOT NULL,
    part       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (content, part)
) STRICT;
CREATE INDEX idx_file_parts_created_at ON file_parts (created_at);
-- Working folders that calls of a principal share: files is JSON, with name, id and size of each.
CREATE TABLE workspaces (
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    id         TEXT NOT NULL,
    files      TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, id)
) STRICT;
CREATE INDEX idx_workspaces_expires_at ON workspaces (expires_at);
-- Sessions that no host has in memory: digest is that of the file with their memory.
CREATE TABLE sessions (
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    id         TEXT NOT NULL,
    language   TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    packages   TEXT NOT NULL,
    ahead      TEXT NOT NULL,
    last       TEXT NOT NULL,
    memory_mb  INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    runs       INTEGER NOT NULL,
    fuel       INTEGER NOT NULL,
    seed       TEXT NOT NULL,
    made       INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, id)
) STRICT;
CREATE INDEX idx_sessions_expires_at ON sessions (expires_at);

-- +goose Down
DROP TABLE sessions;
DROP TABLE workspaces;
DROP TABLE file_parts;
DROP TABLE files;
