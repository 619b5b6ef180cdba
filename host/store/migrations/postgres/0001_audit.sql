-- +goose Up

-- The chain: one row for each record, one chain for each tenant. body is kept byte for
-- byte as it was hashed, which neither TEXT (no NUL, only UTF-8) nor JSONB promises.
CREATE TABLE agent.audit_records (
    tenant       TEXT        NOT NULL,
    seq          BIGINT      NOT NULL CHECK (seq > 0),
    kind         TEXT        NOT NULL,
    execution_id TEXT        NOT NULL,
    time         TIMESTAMPTZ NOT NULL,
    body         BYTEA       NOT NULL,
    prev         TEXT        NOT NULL,
    hash         TEXT        NOT NULL,
    PRIMARY KEY (tenant, seq)
);

-- The ends of each chain. Whoever appends locks the rows of its tenants, in their order.
CREATE TABLE agent.audit_heads (
    tenant    TEXT   PRIMARY KEY,
    first     BIGINT NOT NULL, -- oldest record that is kept
    prev      TEXT   NOT NULL, -- what that one names as the hash before it
    last      BIGINT NOT NULL, -- 0: none yet
    last_hash TEXT   NOT NULL
) WITH (fillfactor = 50); -- room to change rows in place

-- Executions that ended. The first block has the names, types, checks and indexes that
-- the agent-service documents give; created_at is when the execution began.
CREATE TABLE agent.execution_logs (
    id              UUID         PRIMARY KEY DEFAULT gen_random_uuid(),
    principal_id    VARCHAR(200) NOT NULL,
    -- Wider than in those documents, which know people and agents alone: calls of the
    -- machine's owner and of callers who show nothing are on record too.
    principal_type  VARCHAR(20)  NOT NULL,
    session_id      UUID         NOT NULL,
    skill_name      VARCHAR(100) NOT NULL,
    iteration_index INTEGER      NOT NULL DEFAULT 0,
    input_params    JSONB,
    output_result   JSONB,
    token_usage     INTEGER      DEFAULT 0,
    duration_ms     INTEGER,
    status          VARCHAR(20)  NOT NULL,
    error_message   TEXT,
    created_at      TIMESTAMPTZ  NOT NULL DEFAULT now(),

    tenant           TEXT        NOT NULL DEFAULT '',
    api_key          TEXT        NOT NULL DEFAULT '', -- its id
    trace_id         TEXT        NOT NULL DEFAULT '',
    owner            TEXT        NOT NULL DEFAULT '',
    script           TEXT        NOT NULL DEFAULT '',
    version          TEXT        NOT NULL DEFAULT '',
    digest           TEXT        NOT NULL DEFAULT '',
    runner           TEXT        NOT NULL DEFAULT '',
    code             TEXT        NOT NULL DEFAULT '',
    fuel             BIGINT      NOT NULL DEFAULT 0,
    memory_peak      BIGINT      NOT NULL DEFAULT 0,
    limits           JSONB       NOT NULL DEFAULT '{}',
    instance         TEXT        NOT NULL DEFAULT '',
    replay_of        TEXT        NOT NULL DEFAULT '',
    input_bytes      BIGINT      NOT NULL DEFAULT 0,
    input_sha256     TEXT        NOT NULL DEFAULT '',
    input_truncated  BOOLEAN     NOT NULL DEFAULT false,
    output_bytes     BIGINT      NOT NULL DEFAULT 0,
    output_sha256    TEXT        NOT NULL DEFAULT '',
    output_truncated BOOLEAN     NOT NULL DEFAULT false,
    artifacts        JSONB,
    finished_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    exact            BYTEA, -- the execution as JSON, where these columns cannot hold it as it is

    CONSTRAINT ck_execution_logs_principal_type CHECK (principal_type IN ('human', 'agent', 'operator', 'anonymous')),
    CONSTRAINT ck_execution_logs_status CHECK (status IN ('success', 'failed', 'terminated', 'timeout'))
);

-- Of those documents: they serve questions over all tenants.
CREATE INDEX idx_execution_logs_principal ON agent.execution_logs (principal_id, created_at DESC);
CREATE INDEX idx_execution_logs_skill     ON agent.execution_logs (skill_name, created_at DESC);
CREATE INDEX idx_execution_logs_session   ON agent.execution_logs (session_id, iteration_index);
CREATE INDEX idx_execution_logs_status    ON agent.execution_logs (status, created_at DESC);
CREATE INDEX idx_execution_logs_created   ON agent.execution_logs (created_at DESC);

-- Of one tenant, whatever others do: rows of another tenant are not even passed over.
CREATE INDEX idx_execution_logs_tenant           ON agent.execution_logs (tenant, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_principal ON agent.execution_logs (tenant, principal_id, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_skill     ON agent.execution_logs (tenant, skill_name, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_status    ON agent.execution_logs (tenant, status, created_at DESC);
CREATE INDEX idx_execution_logs_tenant_code      ON agent.execution_logs (tenant, code, created_at DESC) WHERE code <> '';
CREATE INDEX idx_execution_logs_trace            ON agent.execution_logs (trace_id, tenant, created_at DESC);

-- Executions that have not ended: few at any time, and as many come and go as there are
-- calls, so that it is cleaned by their number.
CREATE TABLE agent.running_executions (
    id           UUID         PRIMARY KEY,
    tenant       TEXT         NOT NULL,
    principal_id VARCHAR(200) NOT NULL,
    skill_name   VARCHAR(100) NOT NULL,
    session_id   UUID         NOT NULL,
    trace_id     TEXT         NOT NULL,
    instance     TEXT         NOT NULL,
    created_at   TIMESTAMPTZ  NOT NULL,
    started      BYTEA        NOT NULL -- what it began with, as JSON
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX idx_running_executions_tenant ON agent.running_executions (tenant, created_at DESC);

-- Hosts that said that they run.
CREATE TABLE agent.instances (
    id   TEXT        PRIMARY KEY,
    seen TIMESTAMPTZ NOT NULL
);

-- +goose Down
DROP TABLE agent.instances;
DROP TABLE agent.running_executions;
DROP TABLE agent.execution_logs;
DROP TABLE agent.audit_heads;
DROP TABLE agent.audit_records;
