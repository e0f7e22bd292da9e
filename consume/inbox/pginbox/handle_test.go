package pginbox_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		d, event, other := b.door(name), uuid.New(), uuid.New()
		b.deliver(d, event, true)
		b.deliver(d, event, false)
		b.deliver(d, other, true)
		b.want(event, 1, 1)
		b.want(other, 1, 1)
	})
}

// TestMark marks in transactions of the caller's own, by both doors in turn.
func TestMark(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, event := b.door("sql"), uuid.New()
	mark := func(consumer string, commit bool) (first bool) {
		t.Helper()
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if first, err = d.inbox.Mark(t.Context(), tx, consumer, event); err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	markSQL := func(consumer string, commit bool) (first bool) {
		t.Helper()
		tx, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if first, err = d.inbox.MarkSQL(t.Context(), tx, consumer, event); err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	for i, step := range []struct {
		mark             func(string, bool) bool
		consumer         string
		commit, expected bool
	}{
		{mark, "a", false, true}, // rolled back: no mark is left
		{markSQL, "a", false, true},
		{mark, "a", true, true},
		{mark, "a", true, false},
		{markSQL, "a", true, false},
		{markSQL, "A", true, true}, // another consumer
		{mark, "A", false, false},
	} {
		if first := step.mark(step.consumer, step.commit); first != step.expected {
			t.Errorf("step %d: first is %t, want %t", i, first, step.expected)
		}
	}
	b.want(event, 0, 2)
}

// TestFailures are handlers that do not succeed: neither effect nor mark is left, and the
// next delivery does it.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]handler{
		"an error": func(context.Context, execute) error { return errEffect },
		// A statement that failed spoils the transaction, whatever the handler says.
		"a swallowed error": func(ctx context.Context, exec execute) error {
			_ = exec(ctx, `INSERT INTO effects VALUES ('no id', '')`)
			return nil
		},
		"a panic": func(context.Context, execute) error { panic(errEffect) },
		"an end of its goroutine": func(context.Context, execute) error {
			runtime.Goexit()
			return nil
		},
		"a context that ends": func(ctx context.Context, exec execute) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return exec(ctx, `SELECT pg_sleep(60)`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				d, event := b.door(name), uuid.New()
				var ran, panicked bool
				var err error
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { panicked = recover() != nil }()
					err = errEffect // unless it returns
					ran, err = d.deliver(t.Context(), event, func(ctx context.Context, exec execute) error {
						if err := effect(event)(ctx, exec); err != nil {
							return err
						}
						return failing(ctx, exec)
					})
				})
				wg.Wait()
				if err == nil {
					t.Errorf("delivered: %t, panicked: %t, and no error", ran, panicked)
				}
				b.want(event, 0, 0)
				b.deliver(d, event, true)
				b.want(event, 1, 1)
				if n := d.pool.Stat().AcquiredConns(); n != 0 && name == "pgx" {
					t.Errorf("%d connections are still taken", n)
				}
			})
		})
	}
}

// TestHandlersError is passed on as it is.
func TestHandlersError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		ran, err := b.door(name).deliver(t.Context(), uuid.New(), func(context.Context, execute) error { return errEffect })
		if !ran || err != errEffect { //nolint:errorlint // the very error
			t.Errorf("delivered: %t, %v", ran, err)
		}
	})
}

// TestStopped cancels the caller's context, before and while the handler runs.
func TestStopped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		d, event := b.door(name), uuid.New()
		ctx, cancel := context.WithCancel(t.Context())
		ran, err := d.deliver(ctx, event, func(ctx context.Context, exec execute) error {
			err := effect(event)(ctx, exec)
			cancel()
			return err
		})
		if !ran || !errors.Is(err, context.Canceled) {
			t.Errorf("delivered: %t, %v", ran, err)
		}
		if ran, err := d.deliver(ctx, event, effect(event)); ran || !errors.Is(err, context.Canceled) {
			t.Errorf("delivered with a cancelled context: %t, %v", ran, err)
		}
		b.deliver(d, event, true)
		b.want(event, 1, 1)
	})
}

// TestEndedByHandler has handlers that end the transaction themselves, which is not theirs to
// do: it is an error, and still the effect is there if and only if the mark is.
func TestEndedByHandler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pgx   func(context.Context, pgx.Tx) error
		sql   func(*sql.Tx) error
		marks int
	}{
		"commit":   {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, (*sql.Tx).Commit, 1},
		"rollback": {func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, (*sql.Tx).Rollback, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d, one, two := b.door("sql"), uuid.New(), uuid.New()
			_, err := d.inbox.Handle(t.Context(), b.pool, consumer, one, func(ctx context.Context, tx pgx.Tx) error {
				return c.pgx(ctx, tx)
			})
			if !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("pgx: %v", err)
			}
			_, err = d.inbox.HandleSQL(t.Context(), d.db, consumer, two, func(_ context.Context, tx *sql.Tx) error {
				return c.sql(tx)
			})
			if !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("sql: %v", err)
			}
			b.want(one, 0, c.marks)
			b.want(two, 0, c.marks)
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	in, err := pginbox.New(pginbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is asked of the database, so none is needed.
	_, marked := in.Mark(t.Context(), nil, "", uuid.New())
	_, markedSQL := in.MarkSQL(t.Context(), nil, "a\x00", uuid.New())
	_, handled := in.Handle(t.Context(), nil, consumer, uuid.Nil, func(context.Context, pgx.Tx) error { return nil })
	_, handledSQL := in.HandleSQL(t.Context(), nil, "", uuid.New(), nil)
	for i, err := range []error{marked, markedSQL, handled, handledSQL} {
		if err == nil || !strings.HasPrefix(err.Error(), "inbox: the ") {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestPooler uses the protocols that are left behind a connection pooler.
func TestPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"simple_protocol", "exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				d, event := b.door(name, "default_query_exec_mode="+mode), uuid.New()
				b.deliver(d, event, true)
				b.deliver(d, event, false)
				b.want(event, 1, 1)
				if n, err := d.purge(t.Context(), time.Microsecond); n != 1 || err != nil {
					t.Errorf("purged %d, %v", n, err)
				}
			})
		})
	}
}

// TestNoTable has an error that names the table, and no effect.
func TestNoTable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		d := b.door(name, "search_path=elsewhere")
		ran, err := d.deliver(t.Context(), uuid.New(), effect(uuid.New()))
		if ran || err == nil || !strings.Contains(err.Error(), "outbox_inbox") || errors.Is(err, inbox.ErrInProgress) {
			t.Errorf("delivered: %t, %v", ran, err)
		}
	})
}
