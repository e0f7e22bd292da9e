-- The outbox's two tables in one goose migration that needs no other, for a backend with migrations of its own: copy it into
-- their folder under the next number there. It makes what the migrations of layouts/packfinderz make in several steps; columns,
-- types, enum values and the first three indexes of outbox_events are locked.

-- +goose Up
CREATE TYPE event_type_enum AS ENUM (
    'order_created',
    'order_state_changed',
    'line_item_state_changed',
    'license_status_changed',
    'media_uploaded',
    'payment_settled',
    'cash_collected',
    'vendor_payout_recorded',
    'notification_requested',
    'order_expired',
    'order_canceled',
    'reservation_released',
    'ad_created',
    'ad_updated',
    'ad_paused',
    'ad_activated',
    'ad_expired',
    'ad_daily_rollup_ready'
);

CREATE TYPE aggregate_type_enum AS ENUM (
    'vendor_order',
    'checkout_group',
    'license',
    'store',
    'media',
    'ledger_event',
    'notification',
    'ad'
);

CREATE TYPE outbox_dlq_reason_enum AS ENUM (
    'max_attempts',
    'unknown_event_type',
    'invalid_payload',
    'invalid_aggregate',
    'payload_too_large',
    'rejected',
    'terminal',
    'invalid_row'
);

CREATE TABLE outbox_events (
    id             uuid                PRIMARY KEY,
    event_type     event_type_enum     NOT NULL,
    aggregate_type aggregate_type_enum NOT NULL,
    aggregate_id   uuid                NOT NULL,
    payload_json   jsonb               NOT NULL,
    created_at     timestamptz         NOT NULL DEFAULT now(),
    published_at   timestamptz         NULL,
    attempt_count  integer             NOT NULL DEFAULT 0,
    last_error     text                NULL
);

CREATE INDEX idx_outbox_events_published_at ON outbox_events (published_at);
CREATE INDEX idx_outbox_events_event_type ON outbox_events (event_type);
CREATE INDEX idx_outbox_events_aggregate ON outbox_events (aggregate_type, aggregate_id);
-- The claim's: the oldest waiting rows in order, at a cost that does not grow with the rows that are done.
CREATE INDEX idx_outbox_events_claim ON outbox_events (created_at, id) WHERE published_at IS NULL;

CREATE TABLE outbox_dlq (
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

CREATE INDEX idx_outbox_dlq_event_id ON outbox_dlq (event_id);

-- Both tables are append-only. The triggers name the columns that are fixed, so they are not even called when a row is settled.
-- +goose StatementBegin
CREATE FUNCTION outbox_events_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: only published_at, attempt_count and last_error may change', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF id, event_type, aggregate_type, aggregate_id, payload_json, created_at ON outbox_events
    FOR EACH ROW EXECUTE FUNCTION outbox_events_append_only();

-- +goose StatementBegin
CREATE FUNCTION outbox_dlq_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: only retried_at may change', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER outbox_dlq_append_only
    BEFORE UPDATE OF id, event_id, event_type, aggregate_type, aggregate_id, payload_json,
        error_reason, failed_at, created_at, attempt_count, last_error ON outbox_dlq
    FOR EACH ROW EXECUTE FUNCTION outbox_dlq_append_only();

-- +goose Down
DROP TABLE outbox_dlq;
DROP TABLE outbox_events;
DROP FUNCTION outbox_dlq_append_only();
DROP FUNCTION outbox_events_append_only();
DROP TYPE outbox_dlq_reason_enum;
DROP TYPE aggregate_type_enum;
DROP TYPE event_type_enum;
