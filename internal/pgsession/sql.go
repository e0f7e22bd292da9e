package pgsession

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// ErrNotPGX means that connections of database/sql are not those of pgx.
var ErrNotPGX = errors.New("outbox: the *sql.DB is not on pgx; open it with github.com/jackc/pgx/v5/stdlib, or give a *pgxpool.Pool")

// CheckSQL refuses an *sql.DB that is known, without a connection, not to be on pgx.
func CheckSQL(db *sql.DB) error {
	if _, ok := db.Driver().(*stdlib.Driver); !ok {
		return fmt.Errorf("%w (its driver is %T)", ErrNotPGX, db.Driver())
	}
	return nil
}

// sqlLender lends the pgx connections below database/sql. They stay database/sql's own: its limits
// hold, and nobody else is given one meanwhile.
type sqlLender struct{ db *sql.DB }

func (l sqlLender) lend(ctx context.Context) (loan, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	lent := &sqlLoan{over: make(chan struct{}), back: make(chan struct{})}
	found := make(chan error, 1)
	// A driver's connection may only be used inside of Raw, so that Raw lasts as long as the loan.
	go func() {
		defer close(lent.back)
		err := conn.Raw(func(inner any) error {
			own, ok := inner.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("%w (it is on %T)", ErrNotPGX, inner)
			}
			lent.conn = own.Conn()
			found <- nil
			<-lent.over
			return lent.state()
		})
		_ = conn.Close() // it goes back, or is closed already
		if lent.conn == nil {
			found <- err
		}
	}()
	if err := <-found; err != nil {
		<-lent.back
		return nil, err
	}
	return lent, nil
}

// reset does nothing: database/sql finds out by itself when it hands out a connection that is
// closed, and has no way to close those that are idle.
func (l sqlLender) reset() {}

func (l sqlLender) close() { _ = l.db.Close() }

// sqlLoan is over when it is released; then the connection is back.
type sqlLoan struct {
	conn       *pgx.Conn
	over, back chan struct{}
	broken     bool
}

func (l *sqlLoan) Conn() *pgx.Conn { return l.conn }

func (l *sqlLoan) Release() {
	close(l.over)
	<-l.back
}

func (l *sqlLoan) discard() {
	l.broken = true
	l.Release()
}

// state tells database/sql whether the connection can be used again, as pgxpool judges its own.
func (l *sqlLoan) state() error {
	if l.broken || l.conn.IsClosed() || l.conn.PgConn().IsBusy() || l.conn.PgConn().TxStatus() != 'I' {
		return driver.ErrBadConn
	}
	return nil
}
