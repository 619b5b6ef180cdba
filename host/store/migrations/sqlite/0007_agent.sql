-- What is kept of conversations with the agent, and of the tasks that it worked on.

-- +goose Up

-- Each belongs to one principal of one tenant. messages counts those that there were in
-- all; revision every change, so that of two who change one at once only one does.
CREATE TABLE conversations (
    id         TEXT    PRIMARY KEY NOT NULL, -- UUID
    tenant     TEXT    NOT NULL,
    principal  TEXT    NOT NULL,
    title      TEXT    NOT NULL CHECK (length(title) <= 80),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    messages   INTEGER NOT NULL CHECK (messages >= 0),
    iterations INTEGER NOT NULL CHECK (iterations >= 0),
    tokens     INTEGER NOT NULL CHECK (tokens >= 0),
    revision   INTEGER NOT NULL CHECK (revision > 0),
    pending    BLOB -- what waits for an approval; NULL: nothing does. The last one, as it may be large
) STRICT;
CREATE INDEX idx_conversations_owner ON conversations (tenant, principal, updated_at, id); -- pages, and how many there are
CREATE INDEX idx_conversations_updated ON conversations (updated_at); -- what is old

-- The last messages of each, as JSON.
CREATE TABLE conversation_messages (
    conversation_id TEXT    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    seq             INTEGER NOT NULL CHECK (seq >= 0),
    created_at      INTEGER NOT NULL,
    body            TEXT    NOT NULL,
    PRIMARY KEY (conversation_id, seq)
) STRICT;

-- One row for each task. One that runs after ends_by was cut off.
CREATE TABLE agent_sessions (
    id             TEXT    PRIMARY KEY NOT NULL, -- UUID
    tenant         TEXT    NOT NULL,
    principal      TEXT    NOT NULL,
    principal_type TEXT    NOT NULL CHECK (principal_type IN ('human', 'agent', 'operator', 'anonymous')),
    task           TEXT    NOT NULL CHECK (length(task) <= 200),
    status         TEXT    NOT NULL CHECK (status IN ('running', 'completed', 'terminated', 'timeout', 'failed')),
    iterations     INTEGER NOT NULL CHECK (iterations >= 0),
    tokens         INTEGER NOT NULL CHECK (tokens >= 0),
    duration_ms    INTEGER NOT NULL CHECK (duration_ms >= 0),
    created_at     INTEGER NOT NULL,
    ends_by        INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_agent_sessions_created ON agent_sessions (created_at);

-- +goose Down
DROP TABLE agent_sessions;
DROP TABLE conversation_messages;
DROP TABLE conversations;
