-- +goose Up

-- What was changed last of each topic. A transaction that changes something of a topic
-- raises its revision first, so that transactions of one topic come one after the other;
-- hosts look at the revisions to learn that there is something to read.
CREATE TABLE agent.revisions (
    topic    VARCHAR(64) PRIMARY KEY,
    revision BIGINT NOT NULL
);
INSERT INTO agent.revisions (topic, revision) VALUES ('definitions', 0), ('uploads', 0);

-- The operator's skills. The first columns are those of the agent-service documents. There
-- a name is unique; here it is unique for each owner, since ids of tenants' skills are each
-- tenant's own matter, and one must not learn from a conflict what another one has. The
-- operator's own have the owner '', and for them a name is unique as it was.
CREATE TABLE agent.skill_definitions (
    id             UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name           VARCHAR(100) NOT NULL,
    description    TEXT,
    input_schema   JSONB NOT NULL,
    output_schema  JSONB NOT NULL,
    cost_metadata  JSONB DEFAULT '{}',
    is_enabled     BOOLEAN DEFAULT true,
    created_at     TIMESTAMPTZ DEFAULT now(),
    owner          TEXT NOT NULL DEFAULT '',
    version        VARCHAR(64) NOT NULL DEFAULT '0.0.0',
    digest         VARCHAR(71) NOT NULL DEFAULT '',
    type           VARCHAR(32) NOT NULL DEFAULT '',
    runtime        VARCHAR(32) NOT NULL DEFAULT '',
    entry          TEXT NOT NULL DEFAULT '',
    source         VARCHAR(16) NOT NULL DEFAULT 'seed' CHECK (source IN ('seed', 'edge')),
    place          TEXT NOT NULL DEFAULT '',
    manifest       TEXT,
    seed_values    JSONB NOT NULL DEFAULT '{}',
    changed_fields JSONB NOT NULL DEFAULT '[]',
    updated_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_by     TEXT NOT NULL DEFAULT '',
    deleted_at     TIMESTAMPTZ,
    revision       BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT uq_skill_definitions_owner_name UNIQUE (owner, name)
);

-- Uploaded skills where several hosts share them: what is so of each, as JSON of
-- host/catalogue, and the versions in it once more for what the database itself counts.
CREATE TABLE agent.skill_uploads (
    tenant   TEXT NOT NULL,
    id       VARCHAR(64) NOT NULL,
    state    TEXT NOT NULL,
    approved BOOLEAN NOT NULL DEFAULT false,
    live     BOOLEAN NOT NULL DEFAULT true,
    revision BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX idx_skill_uploads_revision ON agent.skill_uploads (revision);
CREATE UNIQUE INDEX uq_skill_uploads_approved ON agent.skill_uploads (id) WHERE approved;

CREATE TABLE agent.skill_upload_versions (
    tenant  TEXT NOT NULL,
    id      VARCHAR(64) NOT NULL,
    version VARCHAR(64) NOT NULL,
    digest  VARCHAR(71) NOT NULL,
    bytes   BIGINT NOT NULL,
    PRIMARY KEY (tenant, id, version),
    FOREIGN KEY (tenant, id) REFERENCES agent.skill_uploads (tenant, id) ON DELETE CASCADE
);
CREATE INDEX idx_skill_upload_versions_digest ON agent.skill_upload_versions (digest);

-- The files of uploaded versions as one archive each, by the digest of the files, in
-- parts: nobody holds a whole one in memory.
CREATE TABLE agent.skill_blobs (
    digest  VARCHAR(71) PRIMARY KEY,
    parts   INTEGER NOT NULL,
    used_at TIMESTAMPTZ NOT NULL
);
CREATE TABLE agent.skill_blob_parts (
    digest VARCHAR(71) NOT NULL REFERENCES agent.skill_blobs (digest) ON DELETE CASCADE,
    part   INTEGER NOT NULL,
    bytes  BYTEA NOT NULL,
    PRIMARY KEY (digest, part)
);
ALTER TABLE agent.skill_blob_parts ALTER COLUMN bytes SET STORAGE EXTERNAL; -- it is compressed already

-- +goose Down
DROP TABLE agent.skill_blob_parts;
DROP TABLE agent.skill_blobs;
DROP TABLE agent.skill_upload_versions;
DROP TABLE agent.skill_uploads;
DROP TABLE agent.skill_definitions;
DROP TABLE agent.revisions;
