-- +goose Up

-- The chain: one row for each record, one chain for each tenant. body is kept byte for
-- byte as it was hashed.
CREATE TABLE audit_records (
    tenant       TEXT    NOT NULL,
    seq          INTEGER NOT NULL CHECK (seq > 0),
    kind         TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    time         INTEGER NOT NULL,
    body         BLOB    NOT NULL,
    prev         TEXT    NOT NULL,
    hash         TEXT    NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT;

-- The ends of each chain. Whoever appends changes the rows of its tenants.
CREATE TABLE audit_heads (
    tenant    TEXT    PRIMARY KEY NOT NULL,
    first     INTEGER NOT NULL, -- oldest record that is kept
    prev      TEXT    NOT NULL, -- what that one names as the hash before it
    last      INTEGER NOT NULL, -- 0: none yet
    last_hash TEXT    NOT NULL
) STRICT;

-- Executions that ended. The first block has the names, checks and indexes that the
-- agent-service documents give; created_at is when the execution began.
CREATE TABLE execution_logs (
    id              TEXT    PRIMARY KEY NOT NULL, -- UUID
    principal_id    TEXT    NOT NULL CHECK (length(principal_id) <= 200),
    -- Wider than in those documents, which know people and agents alone: calls of the
    -- machine's owner and of callers who show nothing are on record too.
    principal_type  TEXT    NOT NULL,
    session_id      TEXT    NOT NULL, -- UUID
    skill_name      TEXT    NOT NULL CHECK (length(skill_name) <= 100),
    iteration_index INTEGER NOT NULL DEFAULT 0,
    input_params    TEXT, -- JSON
    output_result   TEXT, -- JSON
    token_usage     INTEGER DEFAULT 0,
    duration_ms     INTEGER,
    status          TEXT    NOT NULL,
    error_message   TEXT,
    created_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),

    tenant           TEXT    NOT NULL DEFAULT '',
    api_key          TEXT    NOT NULL DEFAULT '', -- its id
    trace_id         TEXT    NOT NULL DEFAULT '',
    owner            TEXT    NOT NULL DEFAULT '',
    script           TEXT    NOT NULL DEFAULT '',
    version          TEXT    NOT NULL DEFAULT '',
    digest           TEXT    NOT NULL DEFAULT '',
    runner           TEXT    NOT NULL DEFAULT '',
    code             TEXT    NOT NULL DEFAULT '',
    fuel             INTEGER NOT NULL DEFAULT 0,
    memory_peak      INTEGER NOT NULL DEFAULT 0,
    limits           TEXT    NOT NULL DEFAULT '{}',
    instance         TEXT    NOT NULL DEFAULT '',
    replay_of        TEXT    NOT NULL DEFAULT '',
    input_bytes      INTEGER NOT NULL DEFAULT 0,
    input_sha256     TEXT    NOT NULL DEFAULT '',
    input_truncated  INTEGER NOT NULL DEFAULT 0,
    output_bytes     INTEGER NOT NULL DEFAULT 0,
    output_sha256    TEXT    NOT NULL DEFAULT '',
    output_truncated INTEGER NOT NULL DEFAULT 0,
    artifacts        TEXT,
    finished_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    exact            BLOB, -- the execution as JSON, where these columns cannot hold it as it is

    CONSTRAINT ck_execution_logs_principal_type CHECK (principal_type IN ('human', 'agent', 'operator', 'anonymous')),
    CONSTRAINT ck_execution_logs_status CHECK (status IN ('success', 'failed', 'terminated', 'timeout'))
) STRICT;

-- Of those documents: they serve questions over all tenants.
CREATE INDEX idx_execution_logs_principal ON execution_logs (principal_id, created_at DESC);
CREATE INDEX idx_execution_logs_skill     ON execution_logs (skill_name, created_at DESC);
CREATE INDEX idx_execution_logs_session   ON execution_logs (session_id, iteration_index);
CREATE INDEX idx_execution_logs_status    ON execution_logs (status, created_at DESC);
CREATE INDEX idx_execution_logs_created   ON execution_logs (created_at DESC);

-- Of one tenant, whatever others do: rows of another tenant are not even passed over.
CREATE INDEX idx_execution_logs_tenant           ON execution_logs (tenant, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_principal ON execution_logs (tenant, principal_id, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_skill     ON execution_logs (tenant, skill_name, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_status    ON execution_logs (tenant, status, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_code      ON execution_logs (tenant, code, created_at DESC) WHERE code <> '';
CREATE INDEX idx_execution_logs_trace            ON execution_logs (trace_id, tenant, created_at DESC);

-- Executions that have not ended: few at any time.
CREATE TABLE running_executions (
    id           TEXT    PRIMARY KEY NOT NULL,
    tenant       TEXT    NOT NULL,
    principal_id TEXT    NOT NULL,
    skill_name   TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    trace_id     TEXT    NOT NULL,
    instance     TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    started      BLOB    NOT NULL -- what it began with, as JSON
) STRICT;
CREATE INDEX idx_running_executions_tenant ON running_executions (tenant, created_at DESC);

-- Hosts that said that they run.
CREATE TABLE instances (
    id   TEXT    PRIMARY KEY NOT NULL,
    seen INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE instances;
DROP TABLE running_executions;
DROP TABLE execution_logs;
DROP TABLE audit_heads;
DROP TABLE audit_records;
