package pgstream

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/pgsession"
)

// settings make the planner always read the stream by its indexes: a plan for the values at hand may sort the whole
// backlog. Nested loops keep shards in the order of their numbers, so that statements that lock them cannot deadlock.
// Without row security a statement fails on rows that a policy hides; with it they would be passed over for ever. All
// run at READ COMMITTED: a statement that waited for another sees what that one wrote.
//
// These sessions do not wait for the disk. WAL keeps its order: after a crash of the server the cursors, the parked
// events and the log are those of one moment. The last half second of settling may be undone, and is published again.
//
// Behind a pooler, which gives the session to others, they are settings of each transaction.
func settings() []pgsession.Setting {
	return []pgsession.Setting{
		{Name: "plan_cache_mode", Value: "force_generic_plan"}, {Name: "jit", Value: "off"},
		{Name: "max_parallel_workers_per_gather", Value: "0"},
		{Name: "enable_seqscan", Value: "off"}, {Name: "enable_bitmapscan", Value: "off"}, {Name: "enable_sort", Value: "off"},
		{Name: "enable_hashjoin", Value: "off"}, {Name: "enable_mergejoin", Value: "off"},
		{Name: "synchronous_commit", Value: "off"}, {Name: "row_security", Value: "off"},
	}
}

// ownPool opens connections like the caller's, with the store's settings. Each direct one is checked: it may lead to
// another server, or to a database that was restored under the same name. Behind a pooler only the reader and the
// heartbeat check.
func ownPool(pool *pgxpool.Pool, connections int, log *slog.Logger, check func(context.Context, *pgx.Conn) error) (*pgsession.Pool, error) {
	own, err := pgsession.New(pool, connections, settings(), log, check)
	if err != nil {
		return nil, fmt.Errorf("outbox: prepare the stream's connections: %w", err)
	}
	return own, nil
}

// reader is the one session that opens windows and reads pages.
type reader struct {
	conn *pgsession.Conn
	// server is which server the cursors in memory are of, where the connection does not say.
	server string
	rows   rowDecoder
	last   int // how many events the last page had
}

// connect makes the reader, if there is none. The new session may lead to another server, or to one that has crashed: it
// is checked, and no cursor in memory is trusted.
func (s *Store) connect(ctx context.Context) error {
	if s.reader != nil {
		return nil
	}
	conn, err := s.own.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("outbox: connect to read the stream: %w", err)
	}
	server, err := s.checkSession(ctx, conn)
	if err != nil {
		conn.Discard()
		return err
	}
	s.forget()
	s.reader = &reader{conn: conn, server: server}
	return nil
}

// checkSession checks a session that is to be the reader's. It returns the server behind a pooler.
func (s *Store) checkSession(ctx context.Context, conn *pgsession.Conn) (server string, err error) {
	if err := s.stream.check(ctx, conn, s.config.Subscription); err != nil {
		return "", err
	}
	marks, err := s.stream.storedMarks(ctx, conn, s.config.Subscription)
	if err != nil {
		return "", err
	}
	if err := s.stream.checkMarks(ctx, conn, marks); err != nil {
		return "", err
	}
	if err := s.notePromotion(ctx, conn); err != nil {
		return "", err
	}
	if err := s.noteServer(ctx, conn); err != nil {
		return "", err
	}
	// A generation of another server, or of an earlier time of it, says nothing.
	if err := s.redefine(ctx, conn); err != nil {
		return "", err
	}
	return s.serverBehind(ctx, conn)
}

// disconnect gives the reader up, after an error: the session may be gone, or in the middle of an answer.
func (s *Store) disconnect() {
	if s.reader == nil {
		return
	}
	s.reader.conn.Discard()
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
