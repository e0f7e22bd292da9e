-- +goose Up

-- The shard of an event: the same for every producer, whatever its language.
CREATE FUNCTION outbox_shard(key text, id uuid) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hashtextextended(coalesce(key, id::text), 0) & {{.MaxShard}})::smallint;

-- +goose StatementBegin
CREATE FUNCTION outbox_emit_bytes(
    p_type text,
    p_payload bytea,
    p_topic text,
    p_key text DEFAULT NULL,
    p_namespace text DEFAULT NULL,
    p_aggregate_type text DEFAULT NULL,
    p_aggregate_id text DEFAULT NULL,
    p_tenant_id uuid DEFAULT NULL,
    p_dedupe_key text DEFAULT NULL,
    p_headers jsonb DEFAULT NULL,
    p_content_type text DEFAULT NULL,
    p_not_before timestamptz DEFAULT NULL,
    p_max_attempts integer DEFAULT NULL,
    p_id uuid DEFAULT NULL,
    p_serialize boolean DEFAULT false
) RETURNS uuid
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'not written yet';
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION outbox_emit_bytes, outbox_shard;
