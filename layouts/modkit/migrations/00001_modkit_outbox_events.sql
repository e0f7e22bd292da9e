-- The outbox table of the ModKit contract: its columns and indexes, and no more.

-- +goose Up
CREATE TABLE "modkit_outbox_events" (
    id              uuid        PRIMARY KEY,
    namespace       text        NOT NULL,
    topic           text        NOT NULL,
    tenant_id       uuid        NULL,
    dedupe_key      text        NULL,
    payload         jsonb       NOT NULL,
    status          text        NOT NULL,
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    locked_by       uuid        NULL,
    locked_until    timestamptz NULL,
    last_error      text        NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX "idx_modkit_outbox_events_status" ON "modkit_outbox_events" (status, next_attempt_at);
CREATE INDEX "idx_modkit_outbox_events_locked_until" ON "modkit_outbox_events" (locked_until);
CREATE UNIQUE INDEX "idx_modkit_outbox_events_dedupe" ON "modkit_outbox_events" (namespace, topic, dedupe_key)
    WHERE dedupe_key IS NOT NULL;

-- +goose Down
DROP TABLE "modkit_outbox_events";
