package pgstream

// Whether a server can be trusted with the cursors.

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrRestored means that the events and cursors of a stream come from another server, or
// another time of it: what their snapshots say is not true here.
var ErrRestored = errors.New("the stream was restored from a dump, or the server went back in time; run outbox repair")

// ErrNoStream means that the stream's tables are not there.
var ErrNoStream = errors.New("there is no stream; make it with outbox migrate up")

// checkSQL compares what is stored with the server. A row that can be seen has an xid below
// the snapshot's xmax, and a cursor that can be seen was written in the past.
const checkSQL = `
SELECT pg_is_in_recovery(),
  coalesce((SELECT xid FROM {stream} ORDER BY xid DESC LIMIT 1) >= pg_snapshot_xmax(pg_current_snapshot()), false),
  EXISTS (SELECT FROM {shards} WHERE pg_snapshot_xmax(coalesce(s2, s1)) > pg_snapshot_xmax(pg_current_snapshot())),
  EXISTS (SELECT FROM {shards} WHERE greatest(q1, hi) > coalesce(pg_sequence_last_value({'stream_seq'}), 0)),
  (SELECT seqcache = 1 AND NOT seqcycle AND seqincrement = 1 FROM pg_sequence WHERE seqrelid = {'stream_seq'})`

// check refuses a server on which the cursors would lose events.
func (s Stream) check(ctx context.Context, db query) error {
	var table *string
	if err := db.QueryRow(ctx, `SELECT to_regclass($1)::text`, s.table("outbox_stream")).Scan(&table); err != nil {
		return fmt.Errorf("outbox: look for the stream: %w", err)
	}
	if table == nil {
		return fmt.Errorf("outbox: %w", ErrNoStream)
	}
	var standby, rows, cursors, sequence, single bool
	if err := db.QueryRow(ctx, s.names(checkSQL)).Scan(&standby, &rows, &cursors, &sequence, &single); err != nil {
		return fmt.Errorf("outbox: check the stream: %w", err)
	}
	switch {
	case standby:
		return errors.New("outbox: this server is a standby; the stream is read on the primary")
	case rows || cursors || sequence:
		return fmt.Errorf("outbox: %w", ErrRestored)
	case !single:
		return errors.New("outbox: the sequence outbox_stream_seq hands out more than one value at a time; " +
			"put it right with ALTER SEQUENCE outbox_stream_seq CACHE 1 INCREMENT 1 NO CYCLE")
	}
	return nil
}

// Verify refuses a server on which the cursors would lose events, as Open does: with
// ErrNoStream, ErrRestored, or in words. It writes nothing.
func (s Stream) Verify(ctx context.Context, tx pgx.Tx) error { return s.check(ctx, tx) }

// noteServerSQL remembers which server, and which timeline of it, the stream is on.
const noteServerSQL = `
UPDATE {settings} AS o SET system_identifier = n.system_identifier, timeline = n.timeline
FROM (SELECT system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint AS timeline
  FROM pg_control_system()) AS n,
  (SELECT system_identifier, timeline FROM {settings}) AS old
WHERE (o.system_identifier, o.timeline) IS DISTINCT FROM (n.system_identifier, n.timeline)
RETURNING old.system_identifier IS NOT NULL, n.system_identifier, n.timeline`

// noteServer says when the server is another one than before, as after a promotion.
func (s *Store) noteServer(ctx context.Context, conn query) error {
	var known bool
	var system, timeline int64
	err := conn.QueryRow(ctx, s.stream.names(noteServerSQL)).Scan(&known, &system, &timeline)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // the same as before
	}
	if err != nil {
		return fmt.Errorf("outbox: note the server's identity: %w", err)
	}
	if known {
		s.log.Info("the stream is on another server, or was promoted; reading goes on from the stored cursors",
			"system_identifier", system, "timeline", timeline)
	}
	return nil
}
