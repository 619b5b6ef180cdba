-- Files that callers bring along to calls, by tenant and SHA-256: content names the parts of one. Times
-- are microseconds since 1970.

-- +goose Up
CREATE TABLE agent.files (
    tenant     TEXT NOT NULL,
    digest     VARCHAR(64) NOT NULL,
    name       TEXT NOT NULL,
    size       BIGINT NOT NULL,
    principal  TEXT NOT NULL,
    content    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, digest)
);
CREATE INDEX idx_files_expires_at ON agent.files (expires_at);
CREATE UNIQUE INDEX uq_files_content ON agent.files (content);
CREATE TABLE agent.file_parts (
    content    TEXT NOT NULL,
    part       BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    body       BYTEA NOT NULL,
    PRIMARY KEY (content, part)
);
CREATE INDEX idx_file_parts_created_at ON agent.file_parts (created_at);
-- Working folders that calls of a principal share: files is JSON, with name, id and size of each.
CREATE TABLE agent.workspaces (
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    id         TEXT NOT NULL,
    files      TEXT NOT NULL,
    bytes      BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, principal, id)
);
CREATE INDEX idx_workspaces_expires_at ON agent.workspaces (expires_at);
-- Sessions that no host has in memory: digest is that of the file with their memory.
CREATE TABLE agent.sessions (
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    id         TEXT NOT NULL,
    language   TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    packages   TEXT NOT NULL,
    ahead      TEXT NOT NULL,
    last       TEXT NOT NULL,
    memory_mb  BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    runs       BIGINT NOT NULL,
    fuel       BIGINT NOT NULL,
    seed       TEXT NOT NULL,
    made       BIGINT NOT NULL,
    digest     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, principal, id)
);
CREATE INDEX idx_sessions_expires_at ON agent.sessions (expires_at);

-- +goose Down
DROP TABLE agent.sessions;
DROP TABLE agent.workspaces;
DROP TABLE agent.file_parts;
DROP TABLE agent.files;
