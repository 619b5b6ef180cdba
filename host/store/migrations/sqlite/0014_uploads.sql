-- Uploaded skills: which version is current, and every version that there is or was. Times
-- are microseconds since 1970, 0 for none. SQLite had no uploads before: see host/catalogue,
-- which imports them from files.

-- +goose Up
DROP TABLE skill_upload_versions;
DROP TABLE skill_uploads;

CREATE TABLE uploads (
    tenant          TEXT NOT NULL,
    id              TEXT NOT NULL,
    current_version TEXT NOT NULL DEFAULT '',
    history         TEXT NOT NULL DEFAULT '',
    approved        BOOLEAN NOT NULL DEFAULT FALSE,
    revision        INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX idx_uploads_revision ON uploads (revision);
CREATE UNIQUE INDEX uq_uploads_approved ON uploads (id) WHERE approved;

CREATE TABLE upload_versions (
    tenant            TEXT NOT NULL,
    id                TEXT NOT NULL,
    version           TEXT NOT NULL,
    digest            TEXT NOT NULL,
    bytes             INTEGER NOT NULL,
    position          INTEGER NOT NULL,
    uploaded_by       TEXT NOT NULL,
    uploaded_at       INTEGER NOT NULL,
    enabled           BOOLEAN NOT NULL DEFAULT FALSE,
    was_enabled       BOOLEAN NOT NULL DEFAULT FALSE,
    approved_by       TEXT NOT NULL DEFAULT '',
    approved_at       INTEGER NOT NULL DEFAULT 0,
    approved_reason   TEXT NOT NULL DEFAULT '',
    quarantined_by    TEXT NOT NULL DEFAULT '',
    quarantined_at    INTEGER NOT NULL DEFAULT 0,
    quarantine_reason TEXT NOT NULL DEFAULT '',
    deleted_at        INTEGER NOT NULL DEFAULT 0,
    gone              BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant, id, version),
    FOREIGN KEY (tenant, id) REFERENCES uploads (tenant, id) ON DELETE CASCADE
);
CREATE INDEX idx_upload_versions_digest ON upload_versions (digest);

-- +goose Down
DROP TABLE upload_versions;
DROP TABLE uploads;

CREATE TABLE skill_uploads (
    tenant   TEXT NOT NULL,
    id       TEXT NOT NULL,
    state    TEXT NOT NULL,
    approved BOOLEAN NOT NULL DEFAULT FALSE,
    live     BOOLEAN NOT NULL DEFAULT TRUE,
    revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX idx_skill_uploads_revision ON skill_uploads (revision);
CREATE UNIQUE INDEX uq_skill_uploads_approved ON skill_uploads (id) WHERE approved;

CREATE TABLE skill_upload_versions (
    tenant  TEXT NOT NULL,
    id      TEXT NOT NULL,
    version TEXT NOT NULL,
    digest  TEXT NOT NULL,
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (tenant, id, version),
    FOREIGN KEY (tenant, id) REFERENCES skill_uploads (tenant, id) ON DELETE CASCADE
);
CREATE INDEX idx_skill_upload_versions_digest ON skill_upload_versions (digest);
