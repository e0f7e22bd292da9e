-- How long the lease of a relay is: one that ends further ahead was written before the server's
-- clock was set back. Relays of a program that does not say leave it NULL. And what is known of
-- the last promotion of a standby: the deliveries that relays made on the old primary and that
-- this server has no trace of.

-- +goose Up
ALTER TABLE outbox_relays ADD COLUMN lease_seconds double precision;
-- Until when a relay is there that waits for its destination, and has no share of the shards.
ALTER TABLE outbox_relays ADD COLUMN waits_until timestamptz;
ALTER TABLE outbox_settings
    ADD COLUMN promoted_at timestamptz,
    ADD COLUMN promoted_from bigint,
    ADD COLUMN promoted_to bigint,
    ADD COLUMN promoted_relays integer NOT NULL DEFAULT 0,
    ADD COLUMN promoted_repeated bigint NOT NULL DEFAULT 0,
    ADD COLUMN promoted_orphaned bigint NOT NULL DEFAULT 0,
    ADD COLUMN promoted_more boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE outbox_settings
    DROP COLUMN promoted_at, DROP COLUMN promoted_from, DROP COLUMN promoted_to, DROP COLUMN promoted_relays,
    DROP COLUMN promoted_repeated, DROP COLUMN promoted_orphaned, DROP COLUMN promoted_more;
ALTER TABLE outbox_relays DROP COLUMN waits_until;
ALTER TABLE outbox_relays DROP COLUMN lease_seconds;
