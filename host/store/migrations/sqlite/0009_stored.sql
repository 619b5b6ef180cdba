-- What each tenant has stored, by kind, so that quotas need no look at all of it. Triggers
-- count, whoever adds or removes a row.

-- +goose Up
CREATE TABLE stored (
    tenant TEXT    NOT NULL,
    kind   TEXT    NOT NULL, -- recordings, conversations or tasks
    bytes  INTEGER NOT NULL,
    items  INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind)
) STRICT, WITHOUT ROWID;

ALTER TABLE conversations ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0; -- of its messages
UPDATE conversations SET bytes = (SELECT COALESCE(SUM(octet_length(body)), 0) FROM conversation_messages WHERE conversation_id = conversations.id);

INSERT INTO stored SELECT tenant, 'recordings', SUM(octet_length(body)), COUNT(*) FROM recordings GROUP BY tenant;
INSERT INTO stored SELECT tenant, 'conversations', SUM(bytes + COALESCE(octet_length(pending), 0)), COUNT(*) FROM conversations GROUP BY tenant;
INSERT INTO stored SELECT tenant, 'tasks', SUM(octet_length(task)), COUNT(*) FROM agent_sessions GROUP BY tenant;

-- What goes first.
CREATE INDEX idx_recordings_tenant ON recordings (tenant, created_at);
CREATE INDEX idx_conversations_tenant ON conversations (tenant, updated_at);
CREATE INDEX idx_agent_sessions_tenant ON agent_sessions (tenant, created_at);

-- +goose StatementBegin
CREATE TRIGGER recordings_added AFTER INSERT ON recordings BEGIN
    INSERT INTO stored VALUES (NEW.tenant, 'recordings', octet_length(NEW.body), 1)
        ON CONFLICT (tenant, kind) DO UPDATE SET bytes = bytes + excluded.bytes, items = items + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER recordings_removed AFTER DELETE ON recordings BEGIN
    UPDATE stored SET bytes = bytes - octet_length(OLD.body), items = items - 1 WHERE tenant = OLD.tenant AND kind = 'recordings';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER agent_sessions_added AFTER INSERT ON agent_sessions BEGIN
    INSERT INTO stored VALUES (NEW.tenant, 'tasks', octet_length(NEW.task), 1)
        ON CONFLICT (tenant, kind) DO UPDATE SET bytes = bytes + excluded.bytes, items = items + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER agent_sessions_removed AFTER DELETE ON agent_sessions BEGIN
    UPDATE stored SET bytes = bytes - octet_length(OLD.task), items = items - 1 WHERE tenant = OLD.tenant AND kind = 'tasks';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversations_added AFTER INSERT ON conversations BEGIN
    INSERT INTO stored VALUES (NEW.tenant, 'conversations', NEW.bytes + COALESCE(octet_length(NEW.pending), 0), 1)
        ON CONFLICT (tenant, kind) DO UPDATE SET bytes = bytes + excluded.bytes, items = items + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversations_changed AFTER UPDATE OF bytes, pending ON conversations BEGIN
    UPDATE stored SET bytes = bytes + NEW.bytes + COALESCE(octet_length(NEW.pending), 0) - OLD.bytes - COALESCE(octet_length(OLD.pending), 0)
        WHERE tenant = NEW.tenant AND kind = 'conversations';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversations_removed AFTER DELETE ON conversations BEGIN
    UPDATE stored SET bytes = bytes - OLD.bytes - COALESCE(octet_length(OLD.pending), 0), items = items - 1 WHERE tenant = OLD.tenant AND kind = 'conversations';
END;
-- +goose StatementEnd
-- Of messages that go with their conversation there is no row to change any more.
-- +goose StatementBegin
CREATE TRIGGER conversation_messages_added AFTER INSERT ON conversation_messages BEGIN
    UPDATE conversations SET bytes = bytes + octet_length(NEW.body) WHERE id = NEW.conversation_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversation_messages_removed AFTER DELETE ON conversation_messages BEGIN
    UPDATE conversations SET bytes = bytes - octet_length(OLD.body) WHERE id = OLD.conversation_id;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER conversation_messages_removed;
DROP TRIGGER conversation_messages_added;
DROP TRIGGER conversations_removed;
DROP TRIGGER conversations_changed;
DROP TRIGGER conversations_added;
DROP TRIGGER agent_sessions_removed;
DROP TRIGGER agent_sessions_added;
DROP TRIGGER recordings_removed;
DROP TRIGGER recordings_added;
DROP INDEX idx_agent_sessions_tenant;
DROP INDEX idx_conversations_tenant;
DROP INDEX idx_recordings_tenant;
ALTER TABLE conversations DROP COLUMN bytes;
DROP TABLE stored;
