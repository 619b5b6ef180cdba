-- +goose Up

-- What was changed last of each topic. A transaction that changes something of a topic
-- raises its revision first; processes look at the revisions to learn that there is
-- something to read.
CREATE TABLE revisions (
    topic    TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO revisions (topic, revision) VALUES ('definitions', 0), ('uploads', 0);

-- The operator's skills. The first columns are those of the agent-service documents. There
-- a name is unique; here it is unique for each owner, since ids of tenants' skills are each
-- tenant's own matter, and one must not learn from a conflict what another one has. The
-- operator's own have the owner '', and for them a name is unique as it was.
CREATE TABLE skill_definitions (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL,
    description    TEXT,
    input_schema   TEXT NOT NULL,
    output_schema  TEXT NOT NULL,
    cost_metadata  TEXT DEFAULT '{}',
    is_enabled     BOOLEAN DEFAULT TRUE,
    created_at     INTEGER NOT NULL,
    owner          TEXT NOT NULL DEFAULT '',
    version        TEXT NOT NULL DEFAULT '0.0.0',
    digest         TEXT NOT NULL DEFAULT '',
    type           TEXT NOT NULL DEFAULT '',
    runtime        TEXT NOT NULL DEFAULT '',
    entry          TEXT NOT NULL DEFAULT '',
    source         TEXT NOT NULL DEFAULT 'seed' CHECK (source IN ('seed', 'edge')),
    place          TEXT NOT NULL DEFAULT '',
    manifest       TEXT,
    seed_values    TEXT NOT NULL DEFAULT '{}',
    changed_fields TEXT NOT NULL DEFAULT '[]',
    updated_at     INTEGER NOT NULL,
    updated_by     TEXT NOT NULL DEFAULT '',
    deleted_at     INTEGER,
    revision       INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT uq_skill_definitions_owner_name UNIQUE (owner, name)
);

-- Uploaded skills where several hosts share them. A host with SQLite is alone, and keeps
-- them in files: these tables are there for the one suite of both databases.
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

CREATE TABLE skill_blobs (
    digest  TEXT PRIMARY KEY,
    parts   INTEGER NOT NULL,
    used_at INTEGER NOT NULL
);
CREATE TABLE skill_blob_parts (
    digest TEXT NOT NULL REFERENCES skill_blobs (digest) ON DELETE CASCADE,
    part   INTEGER NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (digest, part)
);

-- +goose Down
DROP TABLE skill_blob_parts;
DROP TABLE skill_blobs;
DROP TABLE skill_upload_versions;
DROP TABLE skill_uploads;
DROP TABLE skill_definitions;
DROP TABLE revisions;
