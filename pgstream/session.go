package pgstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessionSQL makes the planner read the stream by its indexes, always: a plan for the values
// at hand may fall for a sort of the whole backlog. Joins by loops keep several shards in the
// order of their numbers, so that statements that lock them cannot deadlock. A statement that
// waited for another must see what that one wrote, whatever the database's default isolation.
//
// These sessions do not wait for the disk. WAL keeps its order, so that after a crash of the
// server the cursors, the parked events and the log are those of one moment: the last half
// second of settling may be undone, and what was settled in it is published once more.
// Nothing is lost, and events do not wait behind a flush.
const sessionSQL = `SET default_transaction_isolation = 'read committed';
SET plan_cache_mode = force_generic_plan; SET jit = off; SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET synchronous_commit = off`

// ownPool opens connections like the caller's, with the store's settings.
func ownPool(pool *pgxpool.Pool, connections int) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(connections), 0, 0
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if prepare != nil {
			if err := prepare(ctx, conn); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, sessionSQL)
		return err
	}
	own, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("outbox: prepare the stream's connections: %w", err)
	}
	return own, nil
}

// reader is the one session that opens windows and reads pages.
type reader struct {
	conn *pgxpool.Conn
	rows rowDecoder
	last int // how many events the last page had
}

// connect makes the reader, if there is none. A new session may be one to another server, or
// to one that has crashed since: it is checked, and no cursor in memory is trusted.
func (s *Store) connect(ctx context.Context) error {
	if s.reader != nil {
		return nil
	}
	conn, err := s.own.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("outbox: connect to read the stream: %w", err)
	}
	if err := s.stream.check(ctx, conn); err != nil {
		discard(conn)
		return err
	}
	if err := s.noteServer(ctx, conn); err != nil {
		discard(conn)
		return err
	}
	s.forget()
	s.reader = &reader{conn: conn}
	return nil
}

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

// disconnect gives the reader up after an error: the session may be gone, and in the middle
// of an answer it is of no use.
func (s *Store) disconnect() {
	if s.reader == nil {
		return
	}
	discard(s.reader.conn)
	s.reader = nil
	s.forget()
}

// forget drops what is known of the cursors; they are read from the table again.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		sh.forget()
	}
	s.parked, s.lookAt = nil, time.Time{}
}

// discard closes a connection that has settings of its own.
func discard(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Hijack().Close(ctx) // there is nothing to lose
}

// query is what a pool and a connection have in common.
type query interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

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
