// Package wake tells relays in other processes that something was committed, with PostgreSQL's notifications. They only
// save time: a relay that hears nothing polls.
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
	// notifyEvery is the shortest time between two notifications: NOTIFY takes a lock that the whole server shares.
	notifyEvery = 10 * time.Millisecond
	// notifyTimeout limits one notification; a poll makes up for it.
	notifyTimeout = 2 * time.Second
	// probeTimeout is how long the listener waits for a notification of its own.
	probeTimeout = 3 * time.Second
	// lookEvery is how long a listener hears nothing before it checks that the table was not made anew.
	lookEvery = 5 * time.Second
)

// notifySQL notifies the listeners of table $1. The channel is named after the table's oid: the search paths of the two
// sides may differ.
const notifySQL = `SELECT pg_notify('outbox_' || to_regclass($1)::oid::text, $2)`

// unnamed prepares nothing: behind a pooler a prepared statement would stay in a session that others use next.
const unnamed = pgx.QueryExecModeExec

// Notifier tells the relays of one table; see pgstream.Notifier.
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

// Notify asks for a notification and returns at once. Calls within ten milliseconds become one notification. One that
// cannot be sent is dropped.
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

// Send notifies the relays of a table once. about is for the listener; empty if something was emitted.
func Send(ctx context.Context, db Execer, table, about string) error {
	if _, err := db.Exec(ctx, notifySQL, unnamed, table, about); err != nil {
		return fmt.Errorf("outbox: notify relays: %w", err)
	}
	return nil
}

// Missed is what a wake-up is about if notifications may have been missed.
const Missed = "missed"

// Listen calls wake for every notification of a table until ctx ends. It has a connection of its own, and connects again
// if the connection is lost or the table was made anew. If notifications do not arrive, as behind a pooler in transaction
// mode, it returns outbox.ErrNoNotifications.
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

// listenOnce listens on one connection, after a notification of its own has arrived. It ends when the table was made anew,
// as by pg_restore --clean.
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

// await waits for a notification, and returns what it is about.
func await(ctx context.Context, conn *pgx.Conn, patience time.Duration) (about string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	notification, err := conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return notification.Payload, nil
}
