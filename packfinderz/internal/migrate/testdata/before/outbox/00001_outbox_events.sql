-- The outbox table of the PackFinderz contract. Its columns, types, enum values and
-- first three indexes are locked.

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

CREATE TABLE "outbox_events" (
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

CREATE INDEX "idx_outbox_events_published_at" ON "outbox_events" (published_at);
CREATE INDEX "idx_outbox_events_event_type" ON "outbox_events" (event_type);
CREATE INDEX "idx_outbox_events_aggregate" ON "outbox_events" (aggregate_type, aggregate_id);

-- Append-only: what happened is never rewritten. The trigger names the columns that
-- are fixed, so it is not even called when a row is settled.
-- +goose StatementBegin
CREATE FUNCTION "outbox_events_append_only"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: only published_at, attempt_count and last_error may change', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER "outbox_events_append_only"
    BEFORE UPDATE OF id, event_type, aggregate_type, aggregate_id, payload_json, created_at ON "outbox_events"
    FOR EACH ROW EXECUTE FUNCTION "outbox_events_append_only"();

-- +goose Down
DROP TABLE "outbox_events";
DROP FUNCTION "outbox_events_append_only"();
DROP TYPE aggregate_type_enum;
DROP TYPE event_type_enum;
