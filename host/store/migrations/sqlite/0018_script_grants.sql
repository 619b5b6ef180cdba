-- What the operator allowed the scripts of an Agent Skill, for one state of its files. body is JSON without
-- the values of variables; sealed has those, encrypted with the key file of the state folder.

-- +goose Up
CREATE TABLE script_grants (
    skill  TEXT PRIMARY KEY NOT NULL,
    digest TEXT NOT NULL,
    body   TEXT NOT NULL,
    sealed BLOB NOT NULL
) STRICT;

-- +goose Down
DROP TABLE script_grants;
