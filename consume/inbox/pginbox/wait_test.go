package pginbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// hold marks an event in a transaction that stays open.
func (b *bench) hold(event uuid.UUID) pgx.Tx {
	b.t.Helper()
	tx, err := b.pool.Begin(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	d := b.door("pgx")
	if first, err := d.inbox.Mark(b.t.Context(), tx, consumer, event); !first || err != nil {
		b.t.Fatalf("marked: %t, %v", first, err)
	}
	err = effect(event)(b.t.Context(), func(ctx context.Context, sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return tx
}

// result is what a delivery answered.
type result struct {
	ran bool
	err error
}

// background delivers an event that another transaction has, and returns when it waits.
func (b *bench) background(d *door, event uuid.UUID) <-chan result {
	b.t.Helper()
	answer := make(chan result, 1)
	go func() {
		ran, err := d.deliver(b.t.Context(), event, effect(event))
		answer <- result{ran, err}
	}()
	pgtest.AwaitBlocked(b.t, b.pool, 1)
	return answer
}

// TestWaits has a second delivery wait for what becomes of the first.
func TestWaits(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				event := uuid.New()
				tx := b.hold(event)
				answer := b.background(b.door(name), event)
				end := tx.Rollback
				if commit {
					end = tx.Commit
				}
				if err := end(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := <-answer; got.ran == commit || got.err != nil {
					t.Errorf("delivered: %t, %v", got.ran, got.err)
				}
				b.want(event, 1, 1)
			})
		})
	}
}

// TestLockTimeout ends the wait: the event is in progress elsewhere.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		event := uuid.New()
		tx := b.hold(event)
		ran, err := b.door(name, "lock_timeout=20ms").deliver(t.Context(), event, effect(event))
		if ran || !errors.Is(err, inbox.ErrInProgress) || sqlState(err) != "55P03" {
			t.Errorf("delivered: %t, %v", ran, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.want(event, 1, 1)
	})
}

// TestContextEndsWait ends the wait by the caller's context.
func TestContextEndsWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		event := uuid.New()
		tx := b.hold(event)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan result, 1)
		d := b.door(name)
		go func() {
			ran, err := d.deliver(ctx, event, effect(event))
			answer <- result{ran, err}
		}()
		pgtest.AwaitBlocked(b.t, b.pool, 1)
		cancel()
		if got := <-answer; got.ran || !errors.Is(got.err, context.Canceled) {
			t.Errorf("delivered: %t, %v", got.ran, got.err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.deliver(d, event, true)
		b.want(event, 1, 1)
	})
}

// TestIsolation races above READ COMMITTED: the server's own error is passed on, and the
// next delivery is a duplicate.
func TestIsolation(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]string{"repeatable read": "repeatable%20read", "serializable": "serializable"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				event := uuid.New()
				d := b.door(name, "default_transaction_isolation="+level)
				tx := b.hold(event)
				answer := b.background(d, event)
				if err := tx.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := <-answer; got.ran || sqlState(got.err) != "40001" || errors.Is(got.err, inbox.ErrInProgress) {
					t.Errorf("delivered: %t, %v", got.ran, got.err)
				}
				b.deliver(d, event, false)
				b.want(event, 1, 1)
			})
		})
	}
}

func sqlState(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return ""
	}
	return server.Code
}
