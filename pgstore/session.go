package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlplan"
)

// session is the transaction of a claim that only locks its rows. It begins in the round trip of the claim and ends in
// that of the settle.
type session struct {
	conn  *pgsession.Conn
	begin []string // what is to be sent before the first statement
}

// beginLocked is what a session begins with. The server ends a session that is silent for a lease.
func beginLocked(lease time.Duration) []string {
	return []string{
		"BEGIN ISOLATION LEVEL READ COMMITTED",
		fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", lease.Milliseconds()),
		sqlplan.ByIndex,
	}
}

// openSession takes a connection; the transaction begins with the first statement.
func (s *Store) openSession(ctx context.Context) (*session, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, begin: s.begin}, nil
}

// Query runs a statement in the transaction, which has begun.
func (s *session) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if s.over() {
		return nil, errSessionOver
	}
	return s.conn.Query(ctx, sql, args...)
}

// SendBatch sends statements in one round trip. The transaction must not be over.
func (s *session) SendBatch(ctx context.Context, queue *pgx.Batch) pgx.BatchResults {
	return s.conn.SendBatch(ctx, queue)
}

// errSessionOver is returned when a batch is used after its end.
var errSessionOver = errors.New("the transaction of the claim is over")

// exec runs a statement without a result.
func (s *session) exec(ctx context.Context, sql string) error {
	if s.over() {
		return errSessionOver
	}
	_, err := s.conn.Exec(ctx, sql)
	return err
}

const commitSQL = "COMMIT"

// commit ends the transaction and keeps what it wrote.
func (s *session) commit(ctx context.Context) error {
	if s.over() {
		return errSessionOver
	}
	tag, err := s.conn.Exec(ctx, commitSQL)
	return s.committed(tag, err)
}

// committed reads the server's answer to a commit: a failed transaction is answered without an error, too.
func (s *session) committed(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.String() != commitSQL {
		err = pgx.ErrTxCommitRollback
	}
	if err == nil {
		s.release()
	}
	return err
}

// rollBack ends the transaction, if it has not ended yet.
func (s *session) rollBack(ctx context.Context) {
	if s.over() {
		return
	}
	// An error means that the connection is gone, and the transaction with it.
	_, _ = s.conn.Exec(ctx, "ROLLBACK")
	s.release()
}

// over is whether the transaction has ended here; the server may have ended it before.
func (s *session) over() bool { return s.conn == nil }

func (s *session) release() {
	s.conn.Release()
	s.conn = nil
}
