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
	s.parked, s.lookAt, s.recount = nil, time.Time{}, true
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

// distrust drops idle connections after one that did not answer in time: the others may have gone
// silent, too, and would cost as long again.
func (s *Store) distrust(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		s.own.Reset()
	}
}
