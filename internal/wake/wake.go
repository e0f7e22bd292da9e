// Package wake tells relays in other processes that something was committed, with
// PostgreSQL's notifications. It is an accelerator: a relay that hears nothing polls.
package wake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
)

const (
	// notifyEvery is the shortest time between two notifications. NOTIFY takes a lock at
	// commit that all of the server's transactions share.
	notifyEvery = 10 * time.Millisecond
	// notifyTimeout bounds one notification; the next poll does without it.
	notifyTimeout = 2 * time.Second
	// probeTimeout is how long the listener waits for a notification of its own.
	probeTimeout = 3 * time.Second
	// lookEvery is how long a listener that hears nothing goes without looking whether the table is still
	// the one that it listens to.
	lookEvery = 5 * time.Second
)

// notifySQL notifies the listeners of table $1. The channel is named after the table's
// oid, so that it is the same whatever search path either side has.
const notifySQL = `SELECT pg_notify('outbox_' || to_regclass($1)::oid::text, $2)`

// unnamed sends a statement without a name and in one round trip: a prepared one would stay in a
// session that, behind a pooler, others use next.
const unnamed = pgx.QueryExecModeExec

// Notifier tells the relays of one table. It sends after the commit, on a connection of its
// own choice, never in the business transaction: there it would cost up to half of the peak
// rate.
type Notifier struct {
	pool   *pgxpool.Pool
	table  string
	wanted chan struct{}
	stop   context.CancelFunc
	done   chan struct{}
}

// NewNotifier starts a notifier for a table, named as SQL.
func NewNotifier(pool *pgxpool.Pool, table string) *Notifier {
	ctx, stop := context.WithCancel(context.Background())
	n := &Notifier{pool: pool, table: table, wanted: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go n.run(ctx)
	return n
}

// Notify asks for a notification. It returns at once; those asked for within ten
// milliseconds become one. One that cannot be sent is forgotten: relays poll.
func (n *Notifier) Notify() {
	select {
	case n.wanted <- struct{}{}:
	default: // one is wanted already
	}
}

// Close stops the notifier.
func (n *Notifier) Close() {
	n.stop()
	<-n.done
}

func (n *Notifier) run(ctx context.Context) {
	defer close(n.done)
	for {
		select {
		case <-n.wanted:
		case <-ctx.Done():
			return
		}
		n.send(ctx)
		select {
		case <-time.After(notifyEvery):
		case <-ctx.Done():
			return
		}
	}
}

func (n *Notifier) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	// A failure only means that relays find out by polling.
	_, _ = n.pool.Exec(ctx, notifySQL, unnamed, n.table, "")
}

// Execer is what runs a statement: a pool, a connection or a transaction.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Send notifies the relays of a table once. What it was about is for the listener to know;
// empty is that something was emitted.
func Send(ctx context.Context, db Execer, table, about string) error {
	if _, err := db.Exec(ctx, notifySQL, unnamed, table, about); err != nil {
		return fmt.Errorf("outbox: notify relays: %w", err)
	}
	return nil
}

// Missed is what a wake-up is about when notifications may have been missed: anything.
const Missed = "missed"

// Listen calls wake for every notification of a table until ctx ends, on a connection of its
// own, which it makes anew when it is lost, or when the table was made anew. If notifications do
// not arrive, as behind a pooler in transaction mode, it returns outbox.ErrNoNotifications.
func Listen(ctx context.Context, pool *pgxpool.Pool, table string, wake func(about string)) error {
	return listen(ctx, pool, table, lookEvery, wake)
}

func listen(ctx context.Context, pool *pgxpool.Pool, table string, look time.Duration, wake func(about string)) error {
	for ctx.Err() == nil {
		// Any other error is one of the connection; the relay's own will say what is wrong.
		if err := listenOnce(ctx, pool, table, look, wake); errors.Is(err, outbox.ErrNoNotifications) {
			return err
		}
		wake(Missed)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return nil
}

// Probe listens and notifies once, and returns outbox.ErrNoNotifications if nothing arrives.
func Probe(ctx context.Context, pool *pgxpool.Pool, table string) error {
	listening, heard := context.WithCancel(ctx)
	defer heard()
	err := listenOnce(listening, pool, table, lookEvery, func(string) { heard() })
	if listening.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// errMadeAnew ends a listener whose table has another oid now, and so another channel.
var errMadeAnew = errors.New("the table was made anew")

// listenOnce listens on one connection, after it has heard itself, until the table is another one: a dump
// that is loaded over it (pg_restore --clean) makes it anew.
func listenOnce(ctx context.Context, pool *pgxpool.Pool, table string, look time.Duration, wake func(about string)) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("outbox: connect to listen: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // there is nothing to lose
	// LISTEN would stay in a session that others use next, and hear nothing for this one.
	shares, err := pgsession.Shares(ctx, conn)
	if err != nil {
		return fmt.Errorf("outbox: listen to %s: %w", table, err)
	}
	if shares {
		return outbox.ErrNoNotifications
	}
	channel, err := channelOf(ctx, conn, table)
	if err != nil {
		return fmt.Errorf("outbox: listen to %s: %w", table, err)
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return fmt.Errorf("outbox: listen to %s: %w", table, err)
	}
	probe := uuid.NewString()
	if _, err := pool.Exec(ctx, notifySQL, unnamed, table, probe); err != nil {
		return fmt.Errorf("outbox: listen to %s: %w", table, err)
	}
	heard, patience := false, probeTimeout
	for {
		about, err := await(ctx, conn, patience)
		silent := ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil && about == probe:
			heard, patience = true, look
			wake(Missed) // until now nobody listened
		case err == nil:
			wake(about)
		case silent && !heard:
			return outbox.ErrNoNotifications
		case silent:
			now, err := channelOf(ctx, conn, table)
			if err == nil && now != channel {
				err = errMadeAnew
			}
			if err != nil {
				return fmt.Errorf("outbox: listen to %s: %w", table, err)
			}
		default:
			return fmt.Errorf("outbox: listen to %s: %w", table, err)
		}
	}
}

// channelOf is the channel of a table as it is now.
func channelOf(ctx context.Context, conn *pgx.Conn, table string) (channel string, err error) {
	err = conn.QueryRow(ctx, `SELECT 'outbox_' || to_regclass($1)::oid::text`, unnamed, table).Scan(&channel)
	return channel, err
}

// await waits so long for a notification, and returns what it is about.
func await(ctx context.Context, conn *pgx.Conn, patience time.Duration) (about string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	notification, err := conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return notification.Payload, nil
}
