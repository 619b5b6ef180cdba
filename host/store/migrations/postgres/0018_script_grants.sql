-- What the operator allowed the scripts of an Agent Skill, for one state of its files. body is JSON without
-- the values of variables; sealed has those, encrypted with the key file of the state folder.

-- +goose Up
CREATE TABLE agent.script_grants (
    skill  TEXT PRIMARY KEY NOT NULL,
    digest TEXT NOT NULL,
    body   TEXT NOT NULL,
    sealed BYTEA NOT NULL
);

-- +goose Down
DROP TABLE agent.script_grants;
