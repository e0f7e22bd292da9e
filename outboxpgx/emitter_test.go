package outboxpgx_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/emittest"
	"github.com/packfinderz/outbox/outboxpgx"
)

func TestEmitter(t *testing.T) {
	t.Parallel()
	emittest.Run(t, func(t *testing.T, url string, target outbox.Target, config outbox.EmitConfig) emittest.Emitter {
		t.Helper()
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		emitter, err := outboxpgx.New(target, config)
		if err != nil {
			t.Fatal(err)
		}
		return subject{emitter, pool}
	})
}

type subject struct {
	*outboxpgx.Emitter
	pool *pgxpool.Pool
}

func (s subject) Begin(ctx context.Context) (emittest.Tx, error) {
	tx, err := s.pool.Begin(ctx)
	return transaction{tx, s.Emitter}, err
}

func (s subject) InTx(ctx context.Context, work func(emittest.Tx) error) error {
	return s.Emitter.InTx(ctx, s.pool, func(tx pgx.Tx) error { return work(transaction{tx, s.Emitter}) })
}

type transaction struct {
	tx      pgx.Tx
	emitter *outboxpgx.Emitter
}

func (t transaction) Emit(ctx context.Context, event outbox.Event) (outbox.Emitted, error) {
	return t.emitter.Emit(ctx, t.tx, event)
}

func (t transaction) EmitMany(ctx context.Context, events []outbox.Event) ([]outbox.Emitted, error) {
	return t.emitter.EmitMany(ctx, t.tx, events)
}

func (t transaction) Exec(ctx context.Context, sql string) error {
	_, err := t.tx.Exec(ctx, sql)
	return err
}

func (t transaction) Commit(ctx context.Context) error   { return t.tx.Commit(ctx) }
func (t transaction) Rollback(ctx context.Context) error { return t.tx.Rollback(ctx) }
