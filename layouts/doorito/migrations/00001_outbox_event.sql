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
    CONSTRAINT unique_event_type_idempotency_key UNIQUE (event_type, idempotency_key)
);

CREATE INDEX idx_outbox_event_pending_next_attempt ON "outbox_event" (next_attempt_at) WHERE status = 'pending';

-- +goose Down
DROP TABLE "outbox_event";
