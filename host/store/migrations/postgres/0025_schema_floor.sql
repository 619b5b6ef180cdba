-- The oldest schema that a program has to know to work with this one. A step that takes something away raises it; steps that add do not.

-- +goose Up
CREATE TABLE agent.schema_floor (
    version BIGINT NOT NULL
);
INSERT INTO agent.schema_floor (version) VALUES (25);

-- +goose Down
DROP TABLE agent.schema_floor;
