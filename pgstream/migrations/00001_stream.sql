-- +goose Up

-- What was chosen for life when the stream was made, and the server it was made on.
CREATE TABLE outbox_settings (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    slots smallint NOT NULL,
    slot_seconds integer NOT NULL,
    shards smallint NOT NULL,
    system_identifier bigint,
    timeline bigint,
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO outbox_settings (slots, slot_seconds, shards) VALUES ({{.Slots}}, {{.SlotSeconds}}, {{.Shards}});

-- The log. Every value is drawn singly (CACHE 1): a session that kept some for later would
-- insert them behind the cursors.
CREATE SEQUENCE outbox_stream_seq AS bigint CACHE 1 NO CYCLE;

-- xid and seq come last: a default is computed in the order of the columns, so that a
-- transaction has its xid before it draws a seq, and a lock taken inside the INSERT comes
-- before both. Producers never write slot, xid and seq themselves.
CREATE TABLE outbox_stream (
    slot smallint NOT NULL DEFAULT (floor(date_part('epoch', now()) / {{.SlotSeconds}})::bigint % {{.Slots}}),
    shard smallint NOT NULL CHECK (shard BETWEEN 0 AND {{.MaxShard}}),
    id uuid NOT NULL,
    namespace text,
    topic text NOT NULL,
    type text NOT NULL,
    key text COLLATE "C",
    aggregate_type text,
    aggregate_id text,
    tenant_id uuid,
    headers jsonb,
    content_type text,
    payload bytea NOT NULL,
    not_before timestamptz,
    max_attempts integer CHECK (max_attempts > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    seq bigint NOT NULL DEFAULT (CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('outbox_stream_seq') END)
) PARTITION BY LIST (slot);
ALTER SEQUENCE outbox_stream_seq OWNED BY outbox_stream.seq;
CREATE INDEX outbox_stream_shard_seq ON outbox_stream (shard, seq);
CREATE INDEX outbox_stream_xid_shard_seq ON outbox_stream (xid, shard, seq);
{{range .SlotList}}CREATE TABLE outbox_stream_{{.}} PARTITION OF outbox_stream FOR VALUES IN ({{.}}) WITH (autovacuum_vacuum_insert_scale_factor = 0.5);
{{end}}
-- The ring is fixed: nobody makes or drops a partition later.

CREATE TABLE outbox_subscriptions (
    name text PRIMARY KEY CHECK (name <> '' AND length(name) <= 100),
    namespace text,
    topics text[],
    types text[],
    tenant_id uuid,
    destination text,
    on_dead text NOT NULL DEFAULT 'skip' CHECK (on_dead IN ('skip', 'block')),
    ready boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The cursors: how far each subscription is in each shard, and which relay has it.
CREATE TABLE outbox_shards (
    subscription text NOT NULL REFERENCES outbox_subscriptions (name) ON DELETE CASCADE,
    shard smallint NOT NULL,
    owner uuid,
    fence bigint NOT NULL DEFAULT 0,
    locked_until timestamptz,
    s1 pg_snapshot NOT NULL,
    q1 bigint NOT NULL,
    s2 pg_snapshot,
    q2 bigint,
    hi bigint NOT NULL,
    pos bigint NOT NULL,
    opened_at timestamptz,
    parked_changes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The relays that are alive, so that they can share the shards fairly.
CREATE TABLE outbox_relays (
    subscription text NOT NULL REFERENCES outbox_subscriptions (name) ON DELETE CASCADE,
    worker uuid NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    alive_until timestamptz NOT NULL,
    PRIMARY KEY (subscription, worker)
) WITH (fillfactor = 50);

-- The exceptions: copies of events that could not be delivered at once. The later events of
-- a key wait behind a row that gates it.
CREATE TABLE outbox_parked (
    subscription text NOT NULL REFERENCES outbox_subscriptions (name) ON DELETE CASCADE,
    shard smallint NOT NULL,
    seq bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('retry', 'waiting', 'dead', 'held')),
    gates boolean NOT NULL,
    replayed boolean NOT NULL DEFAULT false,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    last_error text,
    reason text,
    parked_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    id uuid NOT NULL,
    namespace text,
    topic text NOT NULL,
    type text NOT NULL,
    key text COLLATE "C",
    aggregate_type text,
    aggregate_id text,
    tenant_id uuid,
    headers jsonb,
    content_type text,
    payload bytea NOT NULL,
    not_before timestamptz,
    max_attempts integer,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (subscription, shard, seq),
    CHECK (state <> 'retry' OR next_attempt_at IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX outbox_parked_key ON outbox_parked (subscription, shard, key, seq) WHERE gates;
CREATE INDEX outbox_parked_due ON outbox_parked (subscription, shard, next_attempt_at) WHERE state = 'retry';

-- One row per settled page: when, and by whom, the events between two seqs of a window were
-- settled. There is no foreign key: every settle would lock the subscription's row, which is a
-- quarter of what it costs; whoever drops a subscription deletes these.
CREATE TABLE outbox_deliveries (
    subscription text NOT NULL,
    shard smallint NOT NULL,
    part text NOT NULL CHECK (part IN ('late', 'main', 'parked')),
    s1 pg_snapshot,
    s2 pg_snapshot,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    settled_at timestamptz NOT NULL DEFAULT now(),
    worker uuid NOT NULL
);
CREATE INDEX outbox_deliveries_seq ON outbox_deliveries (subscription, shard, to_seq);
CREATE INDEX outbox_deliveries_settled_at ON outbox_deliveries (settled_at);

-- Dedupe keys, and the ids that callers chose: a partitioned table has no unique key of
-- its own.
CREATE TABLE outbox_dedupe (
    id uuid PRIMARY KEY,
    namespace text NOT NULL,
    topic text NOT NULL,
    dedupe_key text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX outbox_dedupe_key ON outbox_dedupe (namespace, topic, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX outbox_dedupe_created_at ON outbox_dedupe (created_at);

-- The subscription that relays serve unless told otherwise, from the first event on: in the
-- snapshot 1:1: nothing is visible.
INSERT INTO outbox_subscriptions (name) VALUES ('default');
INSERT INTO outbox_shards (subscription, shard, s1, q1, hi, pos)
SELECT 'default', shard, '1:1:', 0, 0, 0 FROM generate_series(0, {{.MaxShard}}) AS shard;

-- +goose Down
DROP TABLE outbox_dedupe, outbox_deliveries, outbox_parked, outbox_relays, outbox_shards, outbox_subscriptions, outbox_stream, outbox_settings;
