-- The contract's own index leaves rows of equal due time, such as those of one large
-- transaction, in no order; every claim would sort them all.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_claim";
CREATE INDEX CONCURRENTLY "idx_outbox_event_claim" ON "outbox_event" (next_attempt_at, id) WHERE status = 'pending';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_claim";
