-- What a script's run started, as JSON; NULL: nothing.

-- +goose Up
ALTER TABLE agent.execution_logs ADD COLUMN processes JSONB;

-- +goose Down
ALTER TABLE agent.execution_logs DROP COLUMN processes;
