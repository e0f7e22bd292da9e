package outboxsql_test

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/emittest"
	"github.com/packfinderz/outbox/outboxsql"
)

func TestEmitter(t *testing.T) {
	t.Parallel()
	emittest.Run(t, func(t *testing.T, url string, target outbox.Target, config outbox.EmitConfig) emittest.Emitter {
		t.Helper()
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		emitter, err := outboxsql.New(target, config)
		if err != nil {
			t.Fatal(err)
		}
		return subject{emitter, db}
	})
}

type subject struct {
	*outboxsql.Emitter
	db *sql.DB
}

func (s subject) Begin(ctx context.Context) (emittest.Tx, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	return transaction{tx, s.Emitter}, err
}

func (s subject) InTx(ctx context.Context, work func(emittest.Tx) error) error {
	return s.Emitter.InTx(ctx, s.db, func(tx *sql.Tx) error { return work(transaction{tx, s.Emitter}) })
}

type transaction struct {
	tx      *sql.Tx
	emitter *outboxsql.Emitter
}

func (t transaction) Emit(ctx context.Context, event outbox.Event) (outbox.Emitted, error) {
	return t.emitter.Emit(ctx, t.tx, event)
}

func (t transaction) EmitMany(ctx context.Context, events []outbox.Event) ([]outbox.Emitted, error) {
	return t.emitter.EmitMany(ctx, t.tx, events)
}

func (t transaction) Exec(ctx context.Context, query string) error {
	_, err := t.tx.ExecContext(ctx, query)
	return err
}

func (t transaction) Commit(context.Context) error   { return t.tx.Commit() }
func (t transaction) Rollback(context.Context) error { return t.tx.Rollback() }
