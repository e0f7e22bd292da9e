package outboxtest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// patience limits a drain. It is no measure of speed.
const patience = time.Minute

// Drain relays the target's events to a publisher, such as a *Broker, until everything that is committed is delivered or
// dead, and returns what was delivered, the events of a key in their order. Failed attempts are repeated at once. Events that
// are scheduled for later stay. After a minute it gives up and fails the test, saying what is left.
//
// On the stream it serves the default subscription. Relays that need more, such as a registry, have outbox.Relay.Drain.
func Drain(t testing.TB, pool *pgxpool.Pool, target outbox.Target, to outbox.Publisher) []outbox.Message {
	t.Helper()
	return drain(t, patience, pool, target, to)
}

func drain(t testing.TB, patience time.Duration, pool *pgxpool.Pool, target outbox.Target, to outbox.Publisher) []outbox.Message {
	t.Helper()
	var log logtest.Log
	store, closeStore, err := open(t.Context(), pool, target, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	defer closeStore()
	delivered := &recorder{}
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: to, Hooks: []any{delivered}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		// One batch after the other, so that what is returned is in their order.
		Concurrency: 1,
		Poll:        10 * time.Millisecond, Retry: outbox.RetryPolicy{Base: time.Millisecond, Max: time.Millisecond},
		Grace: 5 * time.Second,
	})
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := relay.Drain(ctx); err != nil {
		t.Fatalf("drain: not everything was settled within %s: %v\n%s\nThe relay's log:\n%s", patience, err, left(t.Context(), store), log.Text())
	}
	return delivered.messages
}

// open opens the store of a target.
func open(ctx context.Context, pool *pgxpool.Pool, target outbox.Target, log *slog.Logger) (outbox.Store, func(), error) {
	switch target := target.(type) {
	case pgstream.Stream:
		store, err := pgstream.Open(ctx, pool, target, pgstream.Config{Logger: log})
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	case layouts.Layout:
		store, err := pgstore.New(pool, target, pgstore.Config{})
		return store, func() {}, err
	}
	_, _, err := sourceOf(target)
	return nil, nil, err
}

// left says what a drain has left.
func left(ctx context.Context, store outbox.Store) string {
	stats, err := store.Stats(ctx)
	if err != nil {
		return fmt.Sprintf("What is left cannot be counted: %v", err)
	}
	return fmt.Sprintf("Left are %d due, %d waiting for a retry, %d held by a relay; %d are dead.", stats.Due, stats.Retrying, stats.Held, stats.Dead)
}

// recorder is a hook that keeps what was delivered. The relay settles one batch at a time.
type recorder struct{ messages []outbox.Message }

// OnSettle keeps the messages that were delivered.
func (r *recorder) OnSettle(report outbox.BatchReport) {
	for i := range report.Messages {
		if report.Outcomes[i].Kind == outbox.Delivered {
			r.messages = append(r.messages, report.Messages[i])
		}
	}
}
