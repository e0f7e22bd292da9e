-- Where an event that will never be published is kept, with the reason. A row is
-- written in the transaction that settles the event.

-- +goose Up
CREATE TYPE outbox_dlq_reason_enum AS ENUM (
    'max_attempts',
    'unknown_event_type',
    'invalid_payload',
    'invalid_aggregate',
    'payload_too_large',
    'rejected',
    'terminal'
);

CREATE TABLE "outbox_dlq" (
    id             uuid                   PRIMARY KEY DEFAULT gen_random_uuid(),
    event_id       uuid                   NOT NULL,
    event_type     event_type_enum        NOT NULL,
    aggregate_type aggregate_type_enum    NOT NULL,
    aggregate_id   uuid                   NOT NULL,
    payload_json   jsonb                  NOT NULL,
    error_reason   outbox_dlq_reason_enum NOT NULL,
    failed_at      timestamptz            NOT NULL DEFAULT now(),
    created_at     timestamptz            NOT NULL,
    attempt_count  integer                NOT NULL,
    last_error     text                   NULL,
    retried_at     timestamptz            NULL
);

CREATE INDEX "idx_outbox_dlq_event_id" ON "outbox_dlq" (event_id);

-- +goose StatementBegin
CREATE FUNCTION "outbox_dlq_append_only"() RETURNS trigger
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
DROP TABLE "outbox_dlq";
DROP FUNCTION "outbox_dlq_append_only"();
DROP TYPE outbox_dlq_reason_enum;
