-- The dead events, for the person who looks for them. It has no other rows, so events that
-- are delivered never touch it.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_dead";
CREATE INDEX CONCURRENTLY "idx_outbox_event_dead" ON "outbox_event" (created_at, id) WHERE status = 'failed';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_event_dead";
