-- Where an event that will never be published is kept, with the reason. A row is
-- written in the transaction that settles the event.

-- +goose Up
-- +goose StatementBegin
DO $$ BEGIN
CREATE TYPE outbox_dlq_reason_enum AS ENUM (
    'max_attempts',
    'unknown_event_type',
    'invalid_payload',
    'invalid_aggregate',
    'payload_too_large',
    'rejected',
    'terminal'
);
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
-- +goose StatementEnd

-- A letter copies the values of its event, and so has the types of that table: one that was there already may have text where ours
-- has enums.
CREATE TABLE "outbox_dlq" AS
SELECT gen_random_uuid()                    AS id,
       id                                   AS event_id,
       event_type,
       aggregate_type,
       aggregate_id,
       payload_json,
       'terminal'::outbox_dlq_reason_enum   AS error_reason,
       now()                                AS failed_at,
       created_at,
       attempt_count,
       last_error,
       NULL::timestamptz                    AS retried_at
FROM "outbox_events" WITH NO DATA;

ALTER TABLE "outbox_dlq"
    ADD PRIMARY KEY (id),
    ALTER id SET DEFAULT gen_random_uuid(),
    ALTER event_id SET NOT NULL,
    ALTER event_type SET NOT NULL,
    ALTER aggregate_type SET NOT NULL,
    ALTER aggregate_id SET NOT NULL,
    ALTER payload_json SET NOT NULL,
    ALTER error_reason SET NOT NULL,
    ALTER failed_at SET NOT NULL,
    ALTER failed_at SET DEFAULT now(),
    ALTER created_at SET NOT NULL,
    ALTER attempt_count SET NOT NULL;

CREATE INDEX "idx_outbox_dlq_event_id" ON "outbox_dlq" (event_id);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "outbox_dlq_append_only"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: only retried_at may change', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER "outbox_dlq_append_only"
    BEFORE UPDATE OF id, event_id, event_type, aggregate_type, aggregate_id, payload_json,
        error_reason, failed_at, created_at, attempt_count, last_error ON "outbox_dlq"
    FOR EACH ROW EXECUTE FUNCTION "outbox_dlq_append_only"();

-- +goose Down
DROP TABLE IF EXISTS "outbox_dlq";
DROP FUNCTION IF EXISTS "outbox_dlq_append_only"();
-- +goose StatementBegin
DO $$ BEGIN
DROP TYPE IF EXISTS outbox_dlq_reason_enum;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $$;
-- +goose StatementEnd
