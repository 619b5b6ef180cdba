-- Sessions of the console. id is a hash of the name that the browser has in its cookie; credential is
-- encrypted with a key derived from that name, so rows alone open nothing. note is shown on the next page.

-- +goose Up
CREATE TABLE agent.console_sessions (
    id         BYTEA PRIMARY KEY NOT NULL,
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    credential BYTEA NOT NULL,
    began_at   TIMESTAMPTZ NOT NULL,
    seen_at    TIMESTAMPTZ NOT NULL,
    note       TEXT NOT NULL DEFAULT '',
    note_good  BOOLEAN NOT NULL DEFAULT FALSE
);

-- +goose Down
DROP TABLE agent.console_sessions;
