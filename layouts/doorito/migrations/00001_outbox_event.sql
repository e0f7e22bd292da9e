-- The outbox table of the Doorito contract, as its Django model describes it. The
-- defaults are for programs that write it with SQL; emit fills every column itself.

-- +goose Up
CREATE TABLE "outbox_event" (
    id              uuid         PRIMARY KEY,
    aggregate_type  varchar(100) NOT NULL,
    aggregate_id    varchar(100) NOT NULL,
    event_type      varchar(100) NOT NULL,
    payload         jsonb        NOT NULL DEFAULT '{}',
    status          varchar(20)  NOT NULL DEFAULT 'pending',
    idempotency_key varchar(255) NOT NULL,
    attempts        integer      NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_attempts    integer      NOT NULL DEFAULT 5 CHECK (max_attempts >= 0),
    next_attempt_at timestamptz  NULL DEFAULT now(),
    delivered_at    timestamptz  NULL,
    error_message   text         NOT NULL DEFAULT '',
    created_at      timestamptz  NOT NULL DEFAULT now(),
    updated_at      timestamptz  NOT NULL DEFAULT now(),
    CONSTRAINT "outbox_event_unique_event_type_idempotency_key" UNIQUE (event_type, idempotency_key)
);

CREATE INDEX "outbox_event_idx_pending_next_attempt" ON "outbox_event" (next_attempt_at) WHERE status = 'pending';

-- The contract names both, whatever the table is called. Of several tables in one schema only the first can have them.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = 'unique_event_type_idempotency_key') THEN
        ALTER TABLE "outbox_event" RENAME CONSTRAINT "outbox_event_unique_event_type_idempotency_key" TO unique_event_type_idempotency_key;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = 'idx_outbox_event_pending_next_attempt') THEN
        ALTER INDEX "outbox_event_idx_pending_next_attempt" RENAME TO idx_outbox_event_pending_next_attempt;
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE "outbox_event";
