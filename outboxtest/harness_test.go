package outboxtest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/pgstream"
)

// failing is a test that is expected to fail. It keeps what the failure said.
type failing struct {
	testing.TB // stays nil: what is not below is not called
	ctx        context.Context
	said       string
}

func (f *failing) Helper()                  {}
func (f *failing) Context() context.Context { return f.ctx }

func (f *failing) Fatal(args ...any) {
	f.said = fmt.Sprint(args...)
	runtime.Goexit()
}

func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// failure is what an assertion said when it failed, or empty if it passed.
func failure(t *testing.T, assertion func(t *failing)) string {
	t.Helper()
	f := &failing{ctx: t.Context()}
	done := make(chan struct{})
	go func() { // which a failure ends
		defer close(done)
		assertion(f)
	}()
	<-done
	return f.said
}

// stream is a database with a stream.
func stream(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := testdb.Pool(t)
	if err := pgstream.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// emit commits events to a target.
func emit(t *testing.T, pool *pgxpool.Pool, target outbox.Target, events ...outbox.Event) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return emitIn(t.Context(), tx, target, events...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func emitIn(ctx context.Context, tx pgx.Tx, target outbox.Target, events ...outbox.Event) error {
	emitter, err := outboxpgx.New(target, outbox.EmitConfig{DefaultTopic: "orders"})
	if err != nil {
		return err
	}
	_, err = emitter.EmitMany(ctx, tx, events)
	return err
}

// begin is a transaction that is rolled back at the end of the test.
func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

// forEachLayout runs a test on the tables of every shipped layout.
func forEachLayout(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool, layout layouts.Layout)) {
	t.Helper()
	for _, l := range shipped.All() {
		t.Run(l.Layout.Name, func(t *testing.T) {
			t.Parallel()
			files, err := l.Migrations(l.Layout)
			if err != nil {
				t.Fatal(err)
			}
			pool := testdb.Pool(t)
			testdb.Migrate(t, pool, files)
			test(t, pool, l.Layout)
		})
	}
}
