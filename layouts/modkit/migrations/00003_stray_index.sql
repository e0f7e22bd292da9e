-- Rows of a status that nobody knows: no relay takes them, and outbox stats and doctor tell of them. The index has no other
-- rows, and so none.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_modkit_outbox_events_stray";
CREATE INDEX CONCURRENTLY "idx_modkit_outbox_events_stray" ON "modkit_outbox_events" (id) WHERE (status IN ('pending', 'processing', 'delivered', 'dead')) IS NOT TRUE;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_modkit_outbox_events_stray";
