-- Events whose topic takes nothing for the moment are parked in a state of their own, by the
-- topic they wait for: relays make them due when it does. And what no relay could read is
-- refused by the database, whoever writes it; what is there already stays.

-- +goose Up
ALTER TABLE outbox_parked
    ADD COLUMN route text,
    DROP CONSTRAINT outbox_parked_state_check,
    ADD CONSTRAINT outbox_parked_state_check CHECK (state IN ('retry', 'waiting', 'stopped', 'dead', 'held')),
    ADD CONSTRAINT outbox_parked_route_check CHECK ((state = 'stopped') = (route IS NOT NULL));
CREATE INDEX outbox_parked_route ON outbox_parked (subscription, shard, route, seq) WHERE state = 'stopped';
ALTER TABLE outbox_stream
    ADD CONSTRAINT outbox_stream_headers_check CHECK (
        headers IS NULL OR jsonb_typeof(headers) = 'object' AND NOT jsonb_path_exists(headers, '$.* ? (@.type() != "string")')
    ) NOT VALID,
    ADD CONSTRAINT outbox_stream_times_check CHECK (isfinite(created_at) AND (not_before IS NULL OR isfinite(not_before))) NOT VALID;

-- +goose Down
UPDATE outbox_parked SET state = 'retry', route = NULL, next_attempt_at = now() WHERE state = 'stopped';
ALTER TABLE outbox_stream DROP CONSTRAINT outbox_stream_headers_check, DROP CONSTRAINT outbox_stream_times_check;
DROP INDEX outbox_parked_route;
ALTER TABLE outbox_parked
    DROP CONSTRAINT outbox_parked_route_check,
    DROP COLUMN route,
    DROP CONSTRAINT outbox_parked_state_check,
    ADD CONSTRAINT outbox_parked_state_check CHECK (state IN ('retry', 'waiting', 'dead', 'held'));
