// Package pgsession runs statements with settings of their own where the session may belong to
// others, too: behind a connection pooler in transaction mode, such as PgBouncer.
//
// On a direct connection settings are made once for each session, and statements are prepared.
// Behind a pooler nothing may stay behind in the session: every statement is sent with its settings,
// in a transaction of its own and one round trip, and has no name.
package pgsession

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Setting is one of the server's settings.
type Setting struct{ Name, Value string }

// Pool is a pool of connections whose statements run with some settings, at READ COMMITTED.
type Pool struct {
	lender lender
	// local are the statements that begin a transaction with the settings; nil if there are none.
	local  []string
	log    *slog.Logger
	notice sync.Once
}

// New makes a pool of connections like those of another pool, but with settings. The log is told
// once if there is a pooler between. New does not connect. Each new connection that has its session to itself
// is given to check, which may refuse it; nil for no check.
func New(
	pool *pgxpool.Pool, connections int, settings []Setting, log *slog.Logger, check func(context.Context, *pgx.Conn) error,
) (*Pool, error) {
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(connections), 0, 0
	config.ConnConfig.DescriptionCacheCapacity = max(config.ConnConfig.DescriptionCacheCapacity, maxDescriptions) // see unnamed
	p := &Pool{local: []string{"BEGIN ISOLATION LEVEL READ COMMITTED", localSQL(settings)}, log: log}
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if prepare != nil {
			if err := prepare(ctx, conn); err != nil {
				return err
			}
		}
		known, err := of(ctx, conn)
		if err != nil {
			return err
		}
		if known.pooled {
			p.notice.Do(func() { p.log.Info(notice) })
		}
		if known.shared() {
			return nil
		}
		if _, err := conn.Exec(ctx, SessionSQL(settings)); err != nil || check == nil {
			return err
		}
		return check(ctx, conn)
	}
	own, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	p.lender = pgxLender{own}
	return p, nil
}

// Borrow uses the connections of another pool, without settings. It must not be closed.
func Borrow(pool *pgxpool.Pool) *Pool { return &Pool{lender: pgxLender{pool}} }

// BorrowSQL is Borrow for connections of database/sql. They have to be those of pgx's stdlib.
func BorrowSQL(db *sql.DB) *Pool { return &Pool{lender: sqlLender{db}} }

// SessionSQL makes settings for a session, with READ COMMITTED.
func SessionSQL(settings []Setting) string {
	var b strings.Builder
	b.WriteString("SET default_transaction_isolation = 'read committed'")
	for _, s := range settings {
		fmt.Fprintf(&b, "; SET %s = '%s'", s.Name, s.Value)
	}
	return b.String()
}

// localSQL makes settings for a transaction.
func localSQL(settings []Setting) string {
	calls := make([]string, len(settings))
	for i, s := range settings {
		calls[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.Name, s.Value)
	}
	return "SELECT " + strings.Join(calls, ", ")
}

// Acquire takes a connection.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	lent, err := p.lender.lend(ctx)
	if err != nil {
		return nil, err
	}
	known, err := of(ctx, lent.Conn())
	if err != nil {
		lent.Release()
		return nil, err
	}
	return &Conn{conn: lent.Conn(), lent: lent, pool: p, shared: known.shared()}, nil
}

// Query runs a statement.
func (p *Pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return failedRows{err}, err
	}
	return conn.query(ctx, sql, args, conn.Release)
}

// QueryRow runs a statement and reads its first row.
func (p *Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := p.Query(ctx, sql, args...) // the row says it
	return row{rows}
}

// Exec runs a statement.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer conn.Release()
	return conn.Exec(ctx, sql, args...)
}

// SendBatch runs statements in one round trip and one transaction.
func (p *Pool) SendBatch(ctx context.Context, queue *pgx.Batch) pgx.BatchResults {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return failedResults{err}
	}
	return &lentResults{conn.SendBatch(ctx, queue), conn.Release}
}

// BeginTx begins a transaction with the settings.
func (p *Pool) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, options)
	if err != nil {
		conn.Release()
		return nil, err
	}
	return &lentTx{tx, conn.Release}, nil
}

// Begin begins a transaction with the settings.
func (p *Pool) Begin(ctx context.Context) (pgx.Tx, error) { return p.BeginTx(ctx, pgx.TxOptions{}) }

// Distrust closes the idle connections after one did not answer in time: the others may be dead, too, and each would
// cost another timeout.
func (p *Pool) Distrust(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		p.lender.reset()
	}
}

// Close closes all connections. It waits for those that are in use.
func (p *Pool) Close() { p.lender.close() }

// Conn is a connection of a pool.
type Conn struct {
	conn   *pgx.Conn
	lent   loan
	pool   *Pool
	shared bool
}

// Shared reports whether statements may meet another session of the server each time.
func (c *Conn) Shared() bool { return c.shared }

// Conn is the connection itself.
func (c *Conn) Conn() *pgx.Conn { return c.conn }

// Release gives the connection back.
func (c *Conn) Release() { c.lent.Release() }

// Query runs a statement. Behind a pooler its transaction ends with its rows.
func (c *Conn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !c.shared {
		return c.conn.Query(ctx, sql, args...)
	}
	return c.query(ctx, sql, args, func() {})
}

// query runs a statement, and release after it.
func (c *Conn) query(ctx context.Context, sql string, args []any, release func()) (pgx.Rows, error) {
	if !c.shared {
		found, err := c.conn.Query(ctx, sql, args...)
		if err != nil {
			release()
			return failedRows{err}, err
		}
		return &rows{Rows: found, finish: func() error { release(); return nil }}, nil
	}
	results := c.send(ctx, []statement{parse(sql, args)})
	found, err := results.Query()
	finish := func() error {
		err := results.Close()
		release()
		return err
	}
	if err != nil {
		_ = finish() // it says the same
		return failedRows{err}, err
	}
	return &rows{Rows: found, finish: finish}, nil
}

// QueryRow runs a statement and reads its first row.
func (c *Conn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if !c.shared {
		return c.conn.QueryRow(ctx, sql, args...)
	}
	rows, _ := c.Query(ctx, sql, args...) // the row says it
	return row{rows}
}

// Exec runs a statement.
func (c *Conn) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if !c.shared {
		return c.conn.Exec(ctx, sql, args...)
	}
	results := c.send(ctx, []statement{parse(sql, args)})
	tag, err = results.Exec()
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return tag, err
}

// SendBatch runs statements in one round trip and one transaction.
func (c *Conn) SendBatch(ctx context.Context, queue *pgx.Batch) pgx.BatchResults {
	if !c.shared {
		return c.conn.SendBatch(ctx, queue)
	}
	return c.send(ctx, parseBatch(queue))
}

// send runs statements in a transaction with the settings. It ends when the results are closed.
func (c *Conn) send(ctx context.Context, list []statement) pgx.BatchResults {
	if c.pool.local == nil { // a transaction that is open is the caller's
		sent, err := send(ctx, c.conn, nil, list, nil)
		if err != nil {
			return failedResults{err}
		}
		return sent
	}
	sent, err := send(ctx, c.conn, c.pool.local, list, []string{"COMMIT"})
	if err != nil {
		end(c.conn)
		return failedResults{err}
	}
	return &lentResults{sent, func() { end(c.conn) }}
}

// BeginTx begins a transaction with the settings.
func (c *Conn) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := c.conn.BeginTx(ctx, options)
	if err != nil || !c.shared {
		return tx, err
	}
	if c.pool.local != nil {
		if _, err := tx.Exec(ctx, c.pool.local[1]); err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx)) // it says the same
			return nil, err
		}
	}
	return unnamedTx{tx}, nil
}

// Begin begins a transaction with the settings.
func (c *Conn) Begin(ctx context.Context) (pgx.Tx, error) { return c.BeginTx(ctx, pgx.TxOptions{}) }

// Discard closes the connection: after an error it may be in the middle of an answer.
func (c *Conn) Discard() { c.lent.discard() }
