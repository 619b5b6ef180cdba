-- What a script's run started, as JSON; NULL: nothing.

-- +goose Up
ALTER TABLE execution_logs ADD COLUMN processes TEXT;

-- +goose Down
ALTER TABLE execution_logs DROP COLUMN processes;
