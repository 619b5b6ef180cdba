-- Tokens by the word of the skill that ran. token_usage has those that the host counted.

-- +goose Up
ALTER TABLE execution_logs ADD COLUMN reported_tokens INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE execution_logs DROP COLUMN reported_tokens;
