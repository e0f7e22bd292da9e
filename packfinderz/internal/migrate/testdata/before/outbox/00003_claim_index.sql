-- The one index the contract lacks: it gives the oldest waiting rows in order, at a
-- cost that does not grow with the rows that are done.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_events_claim";
CREATE INDEX CONCURRENTLY "idx_outbox_events_claim" ON "outbox_events" (created_at, id) WHERE published_at IS NULL;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_events_claim";
