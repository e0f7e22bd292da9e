package pgsession

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lender is where the connections of a pool come from: a pgxpool.Pool or an sql.DB.
type lender interface {
	lend(ctx context.Context) (loan, error)
	// reset closes the idle connections, and the others when they come back, where that can be.
	reset()
	close()
}

// loan is a connection that goes back.
type loan interface {
	Conn() *pgx.Conn
	Release()
	// discard closes the connection instead.
	discard()
}

// discardTimeout bounds a good-bye.
const discardTimeout = time.Second

type pgxLender struct{ pool *pgxpool.Pool }

func (l pgxLender) lend(ctx context.Context) (loan, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pgxLoan{conn}, nil
}

func (l pgxLender) reset() { l.pool.Reset() }
func (l pgxLender) close() { l.pool.Close() }

type pgxLoan struct{ lent *pgxpool.Conn }

func (l pgxLoan) Conn() *pgx.Conn { return l.lent.Conn() }
func (l pgxLoan) Release()        { l.lent.Release() }

func (l pgxLoan) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	_ = l.lent.Hijack().Close(ctx) // there is nothing to lose
}
