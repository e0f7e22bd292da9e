-- What people look for among the parked events: those that wait for a person, and one by its
-- id. Relays ask for neither, and must not: an index on every state would tempt the planner
-- into reading a whole subscription for each event. The log itself gets no more indexes.

-- +goose Up
CREATE INDEX outbox_parked_state ON outbox_parked (subscription, state, shard, seq) WHERE state IN ('dead', 'held');
CREATE INDEX outbox_parked_id ON outbox_parked (id);

-- +goose Down
DROP INDEX outbox_parked_state, outbox_parked_id;
