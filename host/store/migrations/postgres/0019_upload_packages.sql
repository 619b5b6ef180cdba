-- Packages of an uploaded version: blobs with its lock and with the files that the lock names, and
-- the bytes of those. '' and 0: it has none.

-- +goose Up
ALTER TABLE agent.upload_versions ADD COLUMN packages_lock VARCHAR(71) NOT NULL DEFAULT '';
ALTER TABLE agent.upload_versions ADD COLUMN packages_set VARCHAR(71) NOT NULL DEFAULT '';
ALTER TABLE agent.upload_versions ADD COLUMN packages_bytes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX idx_upload_versions_packages_lock ON agent.upload_versions (packages_lock);
CREATE INDEX idx_upload_versions_packages_set ON agent.upload_versions (packages_set);

-- +goose Down
DROP INDEX agent.idx_upload_versions_packages_set;
DROP INDEX agent.idx_upload_versions_packages_lock;
ALTER TABLE agent.upload_versions DROP COLUMN packages_bytes;
ALTER TABLE agent.upload_versions DROP COLUMN packages_set;
ALTER TABLE agent.upload_versions DROP COLUMN packages_lock;
