-- Packages of an uploaded version: blobs with its lock and with the files that the lock names, and
-- the bytes of those. '' and 0: it has none.

-- +goose Up
ALTER TABLE upload_versions ADD COLUMN packages_lock TEXT NOT NULL DEFAULT '';
ALTER TABLE upload_versions ADD COLUMN packages_set TEXT NOT NULL DEFAULT '';
ALTER TABLE upload_versions ADD COLUMN packages_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_upload_versions_packages_lock ON upload_versions (packages_lock);
CREATE INDEX idx_upload_versions_packages_set ON upload_versions (packages_set);

-- +goose Down
DROP INDEX idx_upload_versions_packages_set;
DROP INDEX idx_upload_versions_packages_lock;
ALTER TABLE upload_versions DROP COLUMN packages_bytes;
ALTER TABLE upload_versions DROP COLUMN packages_set;
ALTER TABLE upload_versions DROP COLUMN packages_lock;
