-- Rows of a status that nobody knows: no relay takes them, and outbox stats and doctor tell of them. The index has no other
-- rows, and so none.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_stray";
CREATE INDEX CONCURRENTLY "idx_outbox_event_stray" ON "outbox_event" (id) WHERE (status IN ('pending', 'delivered', 'failed')) IS NOT TRUE;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_stray";
