-- The outbox table of the PackFinderz contract. Its columns, types, enum values and
-- first three indexes are locked.

-- +goose Up
-- A type or a function of these names may be left of a table that was dropped, or be somebody else's. Whether it is the same,
-- outbox migrate and api migrate have found out beforehand.
-- +goose StatementBegin
DO $$ BEGIN
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
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$ BEGIN
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
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
-- +goose StatementEnd

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
CREATE OR REPLACE FUNCTION "outbox_events_append_only"() RETURNS trigger
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
DROP TABLE IF EXISTS "outbox_events";
DROP FUNCTION IF EXISTS "outbox_events_append_only"();
-- Another table that has the types keeps them.
-- +goose StatementBegin
DO $$ BEGIN
DROP TYPE IF EXISTS aggregate_type_enum;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$ BEGIN
DROP TYPE IF EXISTS event_type_enum;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $$;
-- +goose StatementEnd
