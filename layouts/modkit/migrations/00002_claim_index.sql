-- The index the claim needs on top of the contract's: the waiting rows, by due time
-- and id, and none that are done.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_modkit_outbox_events_claim";
CREATE INDEX CONCURRENTLY "idx_modkit_outbox_events_claim" ON "modkit_outbox_events" (next_attempt_at, id) WHERE status = 'pending';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_modkit_outbox_events_claim";
