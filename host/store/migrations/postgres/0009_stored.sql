-- What each tenant has stored, by kind, so that quotas need no look at all of it. Triggers
-- count, whoever adds or removes a row.

-- +goose Up
CREATE TABLE agent.stored (
    tenant TEXT   NOT NULL,
    kind   TEXT   NOT NULL, -- recordings, conversations or tasks
    bytes  BIGINT NOT NULL,
    items  BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind)
) WITH (fillfactor = 70); -- rows are changed all the time: room for that on their own pages

ALTER TABLE agent.conversations ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0; -- of its messages
UPDATE agent.conversations c SET bytes = (SELECT COALESCE(SUM(octet_length(body)), 0) FROM agent.conversation_messages WHERE conversation_id = c.id);

INSERT INTO agent.stored SELECT tenant, 'recordings', SUM(octet_length(body)), COUNT(*) FROM agent.recordings GROUP BY tenant;
INSERT INTO agent.stored SELECT tenant, 'conversations', SUM(bytes + COALESCE(octet_length(pending), 0)), COUNT(*) FROM agent.conversations GROUP BY tenant;
INSERT INTO agent.stored SELECT tenant, 'tasks', SUM(octet_length(task)), COUNT(*) FROM agent.agent_sessions GROUP BY tenant;

-- What goes first.
CREATE INDEX idx_recordings_tenant ON agent.recordings (tenant, created_at);
CREATE INDEX idx_conversations_tenant ON agent.conversations (tenant, updated_at);
CREATE INDEX idx_agent_sessions_tenant ON agent.agent_sessions (tenant, created_at);

-- +goose StatementBegin
CREATE FUNCTION agent.recordings_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO agent.stored AS s VALUES (NEW.tenant, 'recordings', octet_length(NEW.body), 1)
        ON CONFLICT (tenant, kind) DO UPDATE SET bytes = s.bytes + EXCLUDED.bytes, items = s.items + 1;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER recordings_added AFTER INSERT ON agent.recordings FOR EACH ROW EXECUTE FUNCTION agent.recordings_added();
-- +goose StatementBegin
CREATE FUNCTION agent.recordings_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent.stored SET bytes = bytes - octet_length(OLD.body), items = items - 1 WHERE tenant = OLD.tenant AND kind = 'recordings';
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER recordings_removed AFTER DELETE ON agent.recordings FOR EACH ROW EXECUTE FUNCTION agent.recordings_removed();
-- +goose StatementBegin
CREATE FUNCTION agent.agent_sessions_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO agent.stored AS s VALUES (NEW.tenant, 'tasks', octet_length(NEW.task), 1)
        ON CONFLICT (tenant, kind) DO UPDATE SET bytes = s.bytes + EXCLUDED.bytes, items = s.items + 1;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER agent_sessions_added AFTER INSERT ON agent.agent_sessions FOR EACH ROW EXECUTE FUNCTION agent.agent_sessions_added();
-- +goose StatementBegin
CREATE FUNCTION agent.agent_sessions_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent.stored SET bytes = bytes - octet_length(OLD.task), items = items - 1 WHERE tenant = OLD.tenant AND kind = 'tasks';
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER agent_sessions_removed AFTER DELETE ON agent.agent_sessions FOR EACH ROW EXECUTE FUNCTION agent.agent_sessions_removed();
-- +goose StatementBegin
CREATE FUNCTION agent.conversations_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO agent.stored AS s VALUES (NEW.tenant, 'conversations', NEW.bytes + COALESCE(octet_length(NEW.pending), 0), 1)
        ON CONFLICT (tenant, kind) DO UPDATE SET bytes = s.bytes + EXCLUDED.bytes, items = s.items + 1;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER conversations_added AFTER INSERT ON agent.conversations FOR EACH ROW EXECUTE FUNCTION agent.conversations_added();
-- +goose StatementBegin
CREATE FUNCTION agent.conversations_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent.stored SET bytes = bytes + NEW.bytes + COALESCE(octet_length(NEW.pending), 0) - OLD.bytes - COALESCE(octet_length(OLD.pending), 0)
        WHERE tenant = NEW.tenant AND kind = 'conversations';
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER conversations_changed AFTER UPDATE OF bytes, pending ON agent.conversations FOR EACH ROW EXECUTE FUNCTION agent.conversations_changed();
-- +goose StatementBegin
CREATE FUNCTION agent.conversations_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent.stored SET bytes = bytes - OLD.bytes - COALESCE(octet_length(OLD.pending), 0), items = items - 1 WHERE tenant = OLD.tenant AND kind = 'conversations';
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER conversations_removed AFTER DELETE ON agent.conversations FOR EACH ROW EXECUTE FUNCTION agent.conversations_removed();
-- Of messages that go with their conversation there is no row to change any more.
-- +goose StatementBegin
CREATE FUNCTION agent.conversation_messages_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent.conversations SET bytes = bytes + octet_length(NEW.body) WHERE id = NEW.conversation_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER conversation_messages_added AFTER INSERT ON agent.conversation_messages FOR EACH ROW EXECUTE FUNCTION agent.conversation_messages_added();
-- +goose StatementBegin
CREATE FUNCTION agent.conversation_messages_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent.conversations SET bytes = bytes - octet_length(OLD.body) WHERE id = OLD.conversation_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER conversation_messages_removed AFTER DELETE ON agent.conversation_messages FOR EACH ROW EXECUTE FUNCTION agent.conversation_messages_removed();

-- +goose Down
DROP TRIGGER conversation_messages_removed ON agent.conversation_messages;
DROP FUNCTION agent.conversation_messages_removed();
DROP TRIGGER conversation_messages_added ON agent.conversation_messages;
DROP FUNCTION agent.conversation_messages_added();
DROP TRIGGER conversations_removed ON agent.conversations;
DROP FUNCTION agent.conversations_removed();
DROP TRIGGER conversations_changed ON agent.conversations;
DROP FUNCTION agent.conversations_changed();
DROP TRIGGER conversations_added ON agent.conversations;
DROP FUNCTION agent.conversations_added();
DROP TRIGGER agent_sessions_removed ON agent.agent_sessions;
DROP FUNCTION agent.agent_sessions_removed();
DROP TRIGGER agent_sessions_added ON agent.agent_sessions;
DROP FUNCTION agent.agent_sessions_added();
DROP TRIGGER recordings_removed ON agent.recordings;
DROP FUNCTION agent.recordings_removed();
DROP TRIGGER recordings_added ON agent.recordings;
DROP FUNCTION agent.recordings_added();
DROP INDEX agent.idx_agent_sessions_tenant;
DROP INDEX agent.idx_conversations_tenant;
DROP INDEX agent.idx_recordings_tenant;
ALTER TABLE agent.conversations DROP COLUMN bytes;
DROP TABLE agent.stored;
