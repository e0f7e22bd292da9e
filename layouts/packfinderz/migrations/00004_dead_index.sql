-- The dead letters that nobody has retried, for the person who looks for them.

-- +goose NO TRANSACTION
-- +goose Up
-- An interrupted run leaves an index that is there and not valid.
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_dlq_open";
CREATE INDEX CONCURRENTLY "idx_outbox_dlq_open" ON "outbox_dlq" (failed_at, id) WHERE retried_at IS NULL;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idx_outbox_dlq_open";
