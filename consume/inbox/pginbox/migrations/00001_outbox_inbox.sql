-- Which events each consumer has handled. A row is written in the transaction of the
-- event's effect, so that either both are there or neither.

-- +goose Up
CREATE TABLE "outbox_inbox" (
    consumer     text COLLATE "C" NOT NULL,
    event_id     uuid             NOT NULL,
    processed_at timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, event_id)
);

-- For the purge. New rows go to its end, so that keeping it costs little.
CREATE INDEX "outbox_inbox_processed_at" ON "outbox_inbox" (processed_at);

-- +goose Down
DROP TABLE "outbox_inbox";
