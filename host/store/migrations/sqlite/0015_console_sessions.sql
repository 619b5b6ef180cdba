-- Sessions of the console. id is a hash of the name that the browser has in its cookie; credential is
-- encrypted with a key derived from that name, so rows alone open nothing. note is shown on the next page.

-- +goose Up
CREATE TABLE console_sessions (
    id         BLOB PRIMARY KEY NOT NULL,
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    credential BLOB NOT NULL,
    began_at   INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    note       TEXT NOT NULL DEFAULT '',
    note_good  INTEGER NOT NULL DEFAULT FALSE
) STRICT;

-- +goose Down
DROP TABLE console_sessions;
