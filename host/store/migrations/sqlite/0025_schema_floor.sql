-- The oldest schema that a program has to know to work with this one. A step that takes something away raises it; steps that add do not.

-- +goose Up
CREATE TABLE schema_floor (
    version INTEGER NOT NULL
) STRICT;
INSERT INTO schema_floor (version) VALUES (25);

-- +goose Down
DROP TABLE schema_floor;
