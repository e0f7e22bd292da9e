-- What is delivered, by when: for purges, which would read the whole table for each of their steps.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_delivered";
CREATE INDEX CONCURRENTLY "idx_outbox_event_delivered" ON "outbox_event" (delivered_at) WHERE status = 'delivered';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_delivered";
