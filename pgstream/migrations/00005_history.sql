-- xids, snapshots and seqs mean something only within the history of one cluster. These tables tell
-- when that history was left: by a dump that was loaded, or a sequence that was set back.

-- +goose Up

-- Two rows of one stamping, each with the xid that wrote the other: a physical copy keeps them, a
-- load writes the rows anew. There is no primary key: a load into a stream that is there must add
-- its rows, and so be seen, instead of failing on them.
CREATE TABLE outbox_history (
    history uuid NOT NULL,
    stamp bigint NOT NULL,
    stamped_at timestamptz NOT NULL DEFAULT now()
);

-- What was seen once that cannot be in one history. Counters may catch up; this stays until
-- outbox repair. xid and seq, where they are known: events from xid on with a seq up to seq may
-- have been passed over.
CREATE TABLE outbox_doubts (
    evidence text NOT NULL,
    xid xid8,
    seq bigint,
    found_at timestamptz NOT NULL DEFAULT now()
);

-- Writes the two rows, and returns the history's name. One row is written in a subtransaction, some
-- xids after the other: a load in one transaction gives both the same xid, and a load row by row
-- xids next to each other. The burnt subtransactions make the distance a random one.
-- +goose StatementBegin
CREATE FUNCTION outbox_stamp(stamps regclass) RETURNS uuid
LANGUAGE plpgsql
AS $$
DECLARE
    v_history uuid := gen_random_uuid();
    v_first bigint := pg_current_xact_id()::text::bigint;
    v_second bigint;
    v_written boolean;
BEGIN
    FOR i IN 1..10 + floor(random() * 190)::integer LOOP
        BEGIN
            EXECUTE format('INSERT INTO %s (history, stamp) VALUES ($1, 0)', stamps) USING v_history;
            RAISE EXCEPTION USING ERRCODE = 'OB000', MESSAGE = 'outbox: undone on purpose';
        EXCEPTION WHEN SQLSTATE 'OB000' THEN
            NULL;
        END;
    END LOOP;
    BEGIN
        EXECUTE format('INSERT INTO %s (history, stamp) VALUES ($1, $2)', stamps) USING v_history, v_first;
    EXCEPTION WHEN SQLSTATE 'OB000' THEN
        NULL; -- never: the handler is what makes this a subtransaction
    END;
    EXECUTE format('SELECT xmin::text::bigint FROM %s WHERE history = $1', stamps) INTO STRICT v_second USING v_history;
    v_second := v_first + ((v_second - v_first) & 4294967295);
    EXECUTE format('INSERT INTO %s (history, stamp) VALUES ($1, $2)', stamps) USING v_history, v_second;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE history = $1 AND stamp = $2 AND xmin::text::bigint = $3 & 4294967295)', stamps)
        INTO v_written USING v_history, v_second, v_first;
    IF NOT v_written THEN
        RAISE EXCEPTION 'outbox: a history cannot be stamped within a savepoint'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call outbox_stamp at the top of a transaction.';
    END IF;
    RETURN v_history;
END
$$;
-- +goose StatementEnd
SELECT outbox_stamp('outbox_history');

-- The history that a cursor is of; not known where an older program wrote it. awaits_repair is set
-- when a repair has put the cursor right, but was told to let other subscriptions go on first.
ALTER TABLE outbox_shards
    ADD COLUMN history uuid,
    ADD COLUMN awaits_repair boolean NOT NULL DEFAULT false;

-- The cursors that are there are of this history, unless they tell otherwise: ahead of the server, or
-- older than their table. After pg_upgrade they are older, too; but then so are other rows of tables.
-- And whoever stored a snapshot was not over when it was taken: a cursor that has seen its own writer
-- was loaded, by a server whose counter has caught up since. (So looks one that was stored late in its
-- transaction, while a later transaction ended: it waits for a repair in vain, which repeats events
-- and loses none.)
UPDATE outbox_shards AS c SET history = h.history
FROM (SELECT DISTINCT history FROM outbox_history) AS h,
    (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xmax, coalesce(pg_sequence_last_value('outbox_stream_seq'), 0) AS seq) AS n,
    (SELECT xmin::text::bigint AS xid FROM pg_attribute WHERE attrelid = 'outbox_shards'::regclass AND attname = 'xmin') AS born
WHERE pg_snapshot_xmax(coalesce(c.s2, c.s1))::text::bigint <= n.xmax AND greatest(c.q1, c.hi) <= n.seq
  AND NOT pg_visible_in_snapshot((n.xmax - ((n.xmax - c.xmin::text::bigint) & 4294967295))::text::xid8, coalesce(c.s2, c.s1))
  AND (coalesce(c.s2, c.s1)::text = '1:1:'
    OR pg_snapshot_xmax(coalesce(c.s2, c.s1))::text::bigint >= n.xmax - ((n.xmax - born.xid) & 4294967295)
    OR EXISTS (
      SELECT FROM outbox_subscriptions AS s, pg_attribute AS a
      WHERE a.attrelid = 'outbox_subscriptions'::regclass AND a.attname = 'xmin'
        AND (n.xmax - s.xmin::text::bigint) & 4294967295 > (n.xmax - a.xmin::text::bigint) & 4294967295));

-- A cursor that is made from now on is of this history, whichever program makes it. A load brings its own.
CREATE FUNCTION outbox_current_history() RETURNS uuid
LANGUAGE sql STABLE
AS 'SELECT min(history::text)::uuid FROM outbox_history';
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION outbox_current_history SET search_path TO %I, pg_temp', current_schema());
END
$$;
-- +goose StatementEnd
ALTER TABLE outbox_shards ALTER COLUMN history SET DEFAULT outbox_current_history();

-- Nobody's column has the sequence: TRUNCATE ... RESTART IDENTITY would set it back, and the numbers
-- of new events would be behind the cursors.
ALTER SEQUENCE outbox_stream_seq OWNED BY NONE;

-- Only the rotation empties slots, after it has looked whether every subscription is past them. A
-- parent's trigger does not fire for a partition that is truncated by itself.
-- +goose StatementBegin
CREATE FUNCTION outbox_refuse_truncate() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF coalesce(current_setting('outbox.rotation', true), '') <> 'on' THEN
        RAISE EXCEPTION 'outbox: % may hold events that are not delivered; it is not truncated', TG_TABLE_NAME
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'To remove delivered events: outbox purge. It leaves what a subscription still needs.';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_refuse_truncate BEFORE TRUNCATE ON outbox_stream FOR EACH STATEMENT EXECUTE FUNCTION outbox_refuse_truncate();
{{range .SlotList}}CREATE TRIGGER outbox_refuse_truncate BEFORE TRUNCATE ON outbox_stream_{{.}} FOR EACH STATEMENT EXECUTE FUNCTION outbox_refuse_truncate();
{{end}}
-- +goose Down
{{range .SlotList}}DROP TRIGGER outbox_refuse_truncate ON outbox_stream_{{.}};
{{end}}DROP TRIGGER outbox_refuse_truncate ON outbox_stream;
DROP FUNCTION outbox_refuse_truncate();
ALTER SEQUENCE outbox_stream_seq OWNED BY outbox_stream.seq;
ALTER TABLE outbox_shards DROP COLUMN history, DROP COLUMN awaits_repair;
DROP FUNCTION outbox_current_history();
DROP FUNCTION outbox_stamp(regclass);
DROP TABLE outbox_doubts, outbox_history;
