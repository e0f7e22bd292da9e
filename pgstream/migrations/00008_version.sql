-- Which migration the stream is at, for programs that are older or newer than it. It is a
-- function so that it is part of the schema: a dump of the data alone does not carry it, and
-- every role can read it from the catalog. Each later migration replaces it with its own number.

-- +goose Up
CREATE FUNCTION outbox_schema_version() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT 8';

-- +goose Down
DROP FUNCTION outbox_schema_version;
