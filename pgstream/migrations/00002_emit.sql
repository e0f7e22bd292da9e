-- +goose Up

-- The shard of an event: the same for every producer, whatever its language. & instead of %:
-- half of the hashes are negative.
CREATE FUNCTION outbox_shard(key text, id uuid) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hashtextextended(coalesce(key, id::text) COLLATE "C", 0) & {{.MaxShard}})::smallint;

-- Makes the transaction the only one that emits events of these keys with serialization,
-- until it ends. The locks are pg_advisory_xact_lock(1869968482, hashtext(key)): the first
-- number is 'outb' in ASCII and keeps them apart from the locks of others. They are taken in
-- the order of the hashes, so that two calls with the same keys cannot deadlock.
-- +goose StatementBegin
CREATE FUNCTION outbox_lock_keys(keys text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1869968482, hash)
    FROM (
        SELECT DISTINCT hashtext(key COLLATE "C") AS hash FROM unnest(keys) AS key WHERE key IS NOT NULL ORDER BY hash
    ) AS hashes;
END
$$;
-- +goose StatementEnd

-- A UUIDv7: the milliseconds of now, the version, and chance.
-- +goose StatementBegin
CREATE FUNCTION outbox_new_id() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN encode(
    set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
            PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1),
    'hex')::uuid;
-- +goose StatementEnd

-- Refuses what the Go emitters refuse. Limits are bytes.
-- +goose StatementBegin
CREATE FUNCTION outbox_check_event(
    p_type text, p_payload bytea, p_topic text, p_key text, p_namespace text, p_aggregate_type text, p_aggregate_id text,
    p_tenant_id uuid, p_dedupe_key text, p_headers jsonb, p_content_type text, p_not_before timestamptz, p_max_attempts integer
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_problem text;
BEGIN
    v_problem := CASE
        WHEN coalesce(p_type, '') = '' THEN 'type is empty; the stream needs one'
        WHEN coalesce(p_topic, '') = '' THEN 'topic is empty; the stream needs one'
        WHEN p_payload IS NULL THEN 'payload is NULL; use an empty JSON object, {}, for an event without data'
        WHEN octet_length(p_payload) > 1048576 THEN
            format('payload has %s bytes; the limit is 1048576', octet_length(p_payload))
        WHEN p_max_attempts < 1 THEN
            format('max attempts is %s; it must be at least 1, or NULL for the default', p_max_attempts)
        WHEN p_not_before NOT BETWEEN make_timestamptz(1, 1, 1, 0, 0, 0, 'UTC')
            AND make_timestamptz(9999, 12, 31, 23, 59, 59.999999, 'UTC') THEN
            format('not before is %s; the year must be between 1 and 9999', p_not_before)
    END;
    IF v_problem IS NULL THEN
        SELECT format('%s has %s bytes; the limit is %s', field, octet_length(value), max_bytes) INTO v_problem
        FROM (VALUES
            ('namespace', p_namespace, 255), ('topic', p_topic, 255), ('type', p_type, 255),
            ('aggregate type', p_aggregate_type, 255), ('aggregate id', p_aggregate_id, 255),
            ('dedupe key', p_dedupe_key, 1024), ('key', p_key, 1024), ('content type', p_content_type, 255)
        ) AS texts (field, value, max_bytes)
        WHERE octet_length(value) > max_bytes
        LIMIT 1;
    END IF;
    IF v_problem IS NULL AND p_headers IS NOT NULL THEN
        IF jsonb_typeof(p_headers) <> 'object' THEN
            RAISE EXCEPTION 'outbox: headers are of the JSON type %, not an object', jsonb_typeof(p_headers)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Give an object of strings, such as {"trace": "1"}.';
        END IF;
        SELECT CASE
            WHEN bool_or(name = '') THEN 'headers have one with an empty name'
            WHEN bool_or(jsonb_typeof(value) <> 'string') THEN
                format('headers have one that is not a string: %s', min(name) FILTER (WHERE jsonb_typeof(value) <> 'string'))
            WHEN sum(octet_length(name) + octet_length(value #>> '{}')) > 65536 THEN
                format('headers have %s bytes together; the limit is 65536', sum(octet_length(name) + octet_length(value #>> '{}')))
        END INTO v_problem
        FROM jsonb_each(p_headers) AS headers (name, value);
    END IF;
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION 'outbox: %', v_problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A dedupe key belongs to its tenant, so that one tenant's key never swallows another's event.
    IF p_tenant_id IS NOT NULL AND p_dedupe_key IS NOT NULL AND (
        strpos(p_dedupe_key, '/') = 0
        OR lower(split_part(p_dedupe_key, '/', 1)) NOT IN (p_tenant_id::text, replace(p_tenant_id::text, '-', ''))
    ) THEN
        RAISE EXCEPTION 'outbox: dedupe key does not begin with the event''s tenant id and a slash'
            USING ERRCODE = 'invalid_parameter_value', HINT = format('Begin it with %s/', p_tenant_id);
    END IF;
END
$$;
-- +goose StatementEnd

-- Emits an event in the caller's transaction, as the Go emitters do: the same checks, key,
-- shard, locks and dedupe. It returns the event's id, or that of the event that was there first.
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
DECLARE
    c_nil CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    v_given uuid := nullif(p_id, c_nil);
    v_id uuid := coalesce(v_given, outbox_new_id());
    v_namespace text := nullif(p_namespace, '');
    v_tenant_id uuid := nullif(p_tenant_id, c_nil);
    v_dedupe_key text := nullif(p_dedupe_key, '');
    -- The events of an aggregate are expected in order.
    v_key text := coalesce(nullif(p_key, ''), nullif(p_aggregate_type, '') || '/' || nullif(p_aggregate_id, ''));
    v_headers jsonb := nullif(p_headers, '{}');
    v_first uuid;
BEGIN
    PERFORM outbox_check_event(p_type, p_payload, p_topic, v_key, p_namespace, p_aggregate_type, p_aggregate_id,
        v_tenant_id, v_dedupe_key, v_headers, p_content_type, p_not_before, p_max_attempts);
    IF p_serialize THEN
        PERFORM outbox_lock_keys(ARRAY[v_key]);
    END IF;
    -- As often as Go tries: a row may be purged between the conflict and the look-up.
    FOR attempt IN 1..3 LOOP
        IF v_given IS NOT NULL OR v_dedupe_key IS NOT NULL THEN
            INSERT INTO outbox_dedupe (id, namespace, topic, dedupe_key)
            VALUES (v_id, coalesce(v_namespace, ''), p_topic, v_dedupe_key)
            ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                v_first := coalesce(
                    (SELECT d.id FROM outbox_dedupe d WHERE d.id = v_id),
                    (SELECT d.id FROM outbox_dedupe d
                     WHERE d.namespace = coalesce(v_namespace, '') AND d.topic = p_topic AND d.dedupe_key = v_dedupe_key));
                IF v_first IS NOT NULL THEN
                    RETURN v_first;
                END IF;
                CONTINUE;
            END IF;
        END IF;
        -- Only now, with every lock in hand, is the event's seq drawn.
        INSERT INTO outbox_stream (shard, id, namespace, topic, type, key, aggregate_type, aggregate_id, tenant_id,
            headers, content_type, payload, not_before, max_attempts)
        VALUES (outbox_shard(v_key, v_id), v_id, v_namespace, p_topic, p_type, v_key, nullif(p_aggregate_type, ''),
            nullif(p_aggregate_id, ''), v_tenant_id, v_headers, nullif(p_content_type, ''), p_payload, p_not_before,
            p_max_attempts);
        RETURN v_id;
    END LOOP;
    RAISE EXCEPTION 'outbox: emit event %: a unique constraint of outbox_dedupe refused it, and neither the id nor the dedupe key is there', v_id
        USING ERRCODE = 'unique_violation';
END
$$;
-- +goose StatementEnd

-- The same for a JSON payload, which is stored in the spelling that jsonb gives it.
-- +goose StatementBegin
CREATE FUNCTION outbox_emit(
    p_type text,
    p_payload jsonb,
    p_topic text,
    p_key text DEFAULT NULL,
    p_namespace text DEFAULT NULL,
    p_aggregate_type text DEFAULT NULL,
    p_aggregate_id text DEFAULT NULL,
    p_tenant_id uuid DEFAULT NULL,
    p_dedupe_key text DEFAULT NULL,
    p_headers jsonb DEFAULT NULL,
    p_content_type text DEFAULT 'application/json',
    p_not_before timestamptz DEFAULT NULL,
    p_max_attempts integer DEFAULT NULL,
    p_id uuid DEFAULT NULL,
    p_serialize boolean DEFAULT false
) RETURNS uuid
LANGUAGE sql VOLATILE
RETURN outbox_emit_bytes(p_type, convert_to(p_payload::text, 'UTF8'), p_topic, p_key, p_namespace, p_aggregate_type,
    p_aggregate_id, p_tenant_id, p_dedupe_key, p_headers, p_content_type, p_not_before, p_max_attempts, p_id, p_serialize);
-- +goose StatementEnd

-- Functions in plpgsql look names up when they run. They are to find those of this schema,
-- whatever the caller's search path is, and never a temporary table of the same name.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION outbox_lock_keys SET search_path TO %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION outbox_emit_bytes SET search_path TO %I, pg_temp', current_schema());
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION outbox_emit, outbox_emit_bytes, outbox_check_event, outbox_new_id, outbox_lock_keys, outbox_shard;
