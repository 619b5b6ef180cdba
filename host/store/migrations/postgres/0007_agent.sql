-- What is kept of conversations with the agent, and of the tasks that it worked on.

-- +goose Up

-- Each belongs to one principal of one tenant. messages counts those that there were in
-- all; revision every change, so that of two who change one at once only one does.
CREATE TABLE agent.conversations (
    id         UUID        PRIMARY KEY,
    tenant     TEXT        NOT NULL,
    principal  TEXT        NOT NULL,
    title      TEXT        NOT NULL CHECK (length(title) <= 80),
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    messages   BIGINT      NOT NULL CHECK (messages >= 0),
    iterations BIGINT      NOT NULL CHECK (iterations >= 0),
    tokens     BIGINT      NOT NULL CHECK (tokens >= 0),
    revision   BIGINT      NOT NULL CHECK (revision > 0),
    pending    BYTEA -- what waits for an approval; NULL: nothing does. The last one, as it may be large
);
CREATE INDEX idx_conversations_owner ON agent.conversations (tenant, principal, updated_at, id); -- pages, and how many there are
CREATE INDEX idx_conversations_updated ON agent.conversations (updated_at); -- what is old

-- The last messages of each, as JSON: TEXT, since JSONB refuses \u0000, which strangers say.
CREATE TABLE agent.conversation_messages (
    conversation_id UUID        NOT NULL REFERENCES agent.conversations (id) ON DELETE CASCADE,
    seq             BIGINT      NOT NULL CHECK (seq >= 0),
    created_at      TIMESTAMPTZ NOT NULL,
    body            TEXT        NOT NULL,
    PRIMARY KEY (conversation_id, seq)
);

-- One row for each task. One that runs after ends_by was cut off.
CREATE TABLE agent.agent_sessions (
    id             UUID        PRIMARY KEY,
    tenant         TEXT        NOT NULL,
    principal      TEXT        NOT NULL,
    principal_type TEXT        NOT NULL CHECK (principal_type IN ('human', 'agent', 'operator', 'anonymous')),
    task           TEXT        NOT NULL CHECK (length(task) <= 200),
    status         TEXT        NOT NULL CHECK (status IN ('running', 'completed', 'terminated', 'timeout', 'failed')),
    iterations     BIGINT      NOT NULL CHECK (iterations >= 0),
    tokens         BIGINT      NOT NULL CHECK (tokens >= 0),
    duration_ms    BIGINT      NOT NULL CHECK (duration_ms >= 0),
    created_at     TIMESTAMPTZ NOT NULL,
    ends_by        TIMESTAMPTZ NOT NULL
);
CREATE INDEX idx_agent_sessions_created ON agent.agent_sessions (created_at);

-- +goose Down
DROP TABLE agent.agent_sessions;
DROP TABLE agent.conversation_messages;
DROP TABLE agent.conversations;
