-- A subscription has a generation, which changes with its definition: with its filter,
-- destination or policy, and when it is dropped and made again. It is the high half of its
-- shards' fences, so that what a relay does under an old definition finds nothing. A relay of
-- an earlier program has no generation: it does not notice a change.

-- +goose Up
CREATE SEQUENCE outbox_generations AS bigint MAXVALUE 2147483647 NO CYCLE;
-- What is there keeps 0; every new one draws its own, whoever makes it.
ALTER TABLE outbox_subscriptions ADD COLUMN generation bigint NOT NULL DEFAULT 0;
ALTER TABLE outbox_subscriptions ALTER COLUMN generation SET DEFAULT nextval('outbox_generations');
ALTER TABLE outbox_relays ADD COLUMN generation bigint;

-- +goose Down
ALTER TABLE outbox_relays DROP COLUMN generation;
ALTER TABLE outbox_subscriptions DROP COLUMN generation;
DROP SEQUENCE outbox_generations;
