-- Calls of idempotent skills stay in the queue until they have ended: again is 1 and how often one may begin again on
-- another host; 0 of other calls.

-- +goose Up
ALTER TABLE agent.queued_calls ADD COLUMN again INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE agent.queued_calls DROP COLUMN again;
