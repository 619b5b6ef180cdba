-- +goose Up

-- Changes of keys, skills, approvals and settings are records like those of runs.
CREATE INDEX idx_audit_records_changes ON audit_records (time DESC, tenant, seq) WHERE kind = 'change';

-- +goose Down
DROP INDEX idx_audit_records_changes;
