-- Uploaded skills: which version is current, and every version that there is or was. Times
-- are microseconds since 1970, 0 for none. Before, a skill was one JSON object.

-- +goose Up
CREATE TABLE agent.uploads (
    tenant          TEXT NOT NULL,
    id              VARCHAR(64) NOT NULL,
    current_version VARCHAR(64) NOT NULL DEFAULT '',
    history         TEXT NOT NULL DEFAULT '',
    approved        BOOLEAN NOT NULL DEFAULT false,
    revision        BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX idx_uploads_revision ON agent.uploads (revision);
CREATE UNIQUE INDEX uq_uploads_approved ON agent.uploads (id) WHERE approved;

CREATE TABLE agent.upload_versions (
    tenant            TEXT NOT NULL,
    id                VARCHAR(64) NOT NULL,
    version           VARCHAR(64) NOT NULL,
    digest            VARCHAR(71) NOT NULL,
    bytes             BIGINT NOT NULL,
    position          BIGINT NOT NULL,
    uploaded_by       TEXT NOT NULL,
    uploaded_at       BIGINT NOT NULL,
    enabled           BOOLEAN NOT NULL DEFAULT false,
    was_enabled       BOOLEAN NOT NULL DEFAULT false,
    approved_by       TEXT NOT NULL DEFAULT '',
    approved_at       BIGINT NOT NULL DEFAULT 0,
    approved_reason   TEXT NOT NULL DEFAULT '',
    quarantined_by    TEXT NOT NULL DEFAULT '',
    quarantined_at    BIGINT NOT NULL DEFAULT 0,
    quarantine_reason TEXT NOT NULL DEFAULT '',
    deleted_at        BIGINT NOT NULL DEFAULT 0,
    gone              BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, id, version),
    FOREIGN KEY (tenant, id) REFERENCES agent.uploads (tenant, id) ON DELETE CASCADE
);
CREATE INDEX idx_upload_versions_digest ON agent.upload_versions (digest);

-- +goose StatementBegin
CREATE FUNCTION agent.micros(t JSONB) RETURNS BIGINT LANGUAGE SQL AS
    $$ SELECT COALESCE(ROUND(EXTRACT(EPOCH FROM (t #>> '{}')::timestamptz) * 1000000), 0)::bigint $$;
-- +goose StatementEnd

INSERT INTO agent.uploads (tenant, id, current_version, history, approved, revision)
SELECT tenant, id, COALESCE(s ->> 'current', ''),
    COALESCE((SELECT string_agg(h, ' ' ORDER BY n) FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(s -> 'history') = 'array' THEN s -> 'history' ELSE '[]' END) WITH ORDINALITY AS e (h, n)), ''),
    approved, revision
FROM (SELECT *, state::jsonb AS s FROM agent.skill_uploads) AS old;

INSERT INTO agent.upload_versions (tenant, id, version, digest, bytes, position, uploaded_by, uploaded_at, enabled, was_enabled,
    approved_by, approved_at, approved_reason, quarantined_by, quarantined_at, quarantine_reason, deleted_at, gone)
SELECT tenant, id, v ->> 'version', v ->> 'digest', COALESCE((v ->> 'size')::bigint, 0), n, COALESCE(v ->> 'uploaded_by', ''), agent.micros(v -> 'uploaded_at'),
    COALESCE((v ->> 'enabled')::boolean, false), COALESCE((v ->> 'was_enabled')::boolean, false),
    COALESCE(v #>> '{approved,by}', ''), agent.micros(v #> '{approved,at}'), COALESCE(v #>> '{approved,word}', ''),
    COALESCE(v #>> '{quarantine,by}', ''), CASE WHEN v ? 'quarantine' THEN GREATEST(agent.micros(v #> '{quarantine,at}'), 1) ELSE 0 END, COALESCE(v #>> '{quarantine,word}', ''),
    agent.micros(v -> 'deleted'), COALESCE((v ->> 'gone')::boolean, false)
FROM agent.skill_uploads, jsonb_array_elements(CASE WHEN jsonb_typeof(state::jsonb -> 'versions') = 'array' THEN state::jsonb -> 'versions' ELSE '[]' END) WITH ORDINALITY AS e (v, n);

DROP FUNCTION agent.micros(JSONB);
DROP TABLE agent.skill_upload_versions;
DROP TABLE agent.skill_uploads;

-- +goose Down
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

INSERT INTO agent.skill_uploads (tenant, id, state, approved, live, revision)
SELECT u.tenant, u.id, jsonb_build_object('format', 1, 'tenant', u.tenant, 'id', u.id, 'current', u.current_version,
        'history', to_jsonb(string_to_array(NULLIF(u.history, ''), ' ')),
        'versions', jsonb_agg(jsonb_strip_nulls(jsonb_build_object('version', v.version, 'digest', v.digest, 'size', v.bytes,
            'uploaded_by', v.uploaded_by, 'uploaded_at', to_timestamp(v.uploaded_at / 1000000.0), 'enabled', v.enabled, 'was_enabled', v.was_enabled,
            'approved', CASE WHEN v.approved_at > 0 THEN jsonb_build_object('by', v.approved_by, 'at', to_timestamp(v.approved_at / 1000000.0), 'word', v.approved_reason) END,
            'quarantine', CASE WHEN v.quarantined_at > 0 THEN jsonb_build_object('by', v.quarantined_by, 'at', to_timestamp(v.quarantined_at / 1000000.0), 'word', v.quarantine_reason) END,
            'deleted', CASE WHEN v.deleted_at > 0 THEN to_timestamp(v.deleted_at / 1000000.0) END, 'gone', v.gone)) ORDER BY v.position))::text,
    u.approved, bool_or(v.deleted_at = 0), u.revision
FROM agent.uploads u JOIN agent.upload_versions v ON v.tenant = u.tenant AND v.id = u.id GROUP BY u.tenant, u.id;
INSERT INTO agent.skill_upload_versions (tenant, id, version, digest, bytes)
SELECT tenant, id, version, digest, bytes FROM agent.upload_versions WHERE NOT gone;

DROP TABLE agent.upload_versions;
DROP TABLE agent.uploads;
