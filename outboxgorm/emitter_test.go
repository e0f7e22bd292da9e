package outboxgorm_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/emittest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxgorm"
)

func TestEmitter(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]gorm.Config{
		"plain": {},
		// GORM wraps the transaction of a prepared statement in its own type.
		"prepared statements": {PrepareStmt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emittest.Run(t, func(t *testing.T, url string, target outbox.Target, emitConfig outbox.EmitConfig) emittest.Emitter {
				t.Helper()
				emitter, err := outboxgorm.New(target, emitConfig)
				if err != nil {
					t.Fatal(err)
				}
				return subject{emitter, open(t, url, config)}
			})
		})
	}
}

func open(t *testing.T, url string, config gorm.Config) *gorm.DB {
	t.Helper()
	config.Logger = logger.Discard
	db, err := gorm.Open(postgres.Open(url), &config)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return db
}

func TestOutsideTransaction(t *testing.T) {
	t.Parallel()
	emitter, err := outboxgorm.New(modkit.Layout(), outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, pgtest.URL(t), gorm.Config{})
	if _, err := emitter.Emit(t.Context(), db, outbox.Event{}); !errors.Is(err, outboxgorm.ErrNoTransaction) {
		t.Errorf("Emit: got %v, want ErrNoTransaction", err)
	}
	if _, err := emitter.EmitMany(t.Context(), db, []outbox.Event{{}}); !errors.Is(err, outboxgorm.ErrNoTransaction) {
		t.Errorf("EmitMany: got %v, want ErrNoTransaction", err)
	}
	dry := db.Session(&gorm.Session{DryRun: true}).Transaction(func(tx *gorm.DB) error {
		_, err := emitter.Emit(t.Context(), tx, outbox.Event{})
		return err
	})
	if !errors.Is(dry, outboxgorm.ErrDryRun) {
		t.Errorf("in a dry run: got %v, want ErrDryRun", dry)
	}
	for _, none := range []*gorm.DB{nil, {}} {
		if _, err := emitter.Emit(t.Context(), none, outbox.Event{}); err == nil {
			t.Errorf("%v was used as a transaction", none)
		}
		if err := emitter.InTx(t.Context(), none, func(*gorm.DB) error { return nil }); err == nil {
			t.Errorf("%v was used as a database", none)
		}
	}
	broken := db.Begin()
	broken.Rollback()
	if _, err := emitter.Emit(t.Context(), broken.Exec("SELECT"), outbox.Event{}); err == nil {
		t.Error("a transaction that has failed was used")
	}
}

func TestNudgeWaitsForTheOuterTransaction(t *testing.T) {
	t.Parallel()
	nudges := 0
	emitter, err := outboxgorm.New(modkit.Layout(), outbox.EmitConfig{Nudge: func() { nudges++ }})
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, pgtest.URL(t), gorm.Config{})
	err = db.Transaction(func(tx *gorm.DB) error {
		return emitter.InTx(t.Context(), tx, func(*gorm.DB) error { return nil })
	})
	if err != nil || nudges != 0 {
		t.Errorf("got %v and %d nudges, want none inside a transaction that has not committed", err, nudges)
	}
}

type subject struct {
	*outboxgorm.Emitter
	db *gorm.DB
}

func (s subject) Begin(ctx context.Context) (emittest.Tx, error) {
	tx := s.db.WithContext(ctx).Begin()
	return transaction{tx, s.Emitter}, tx.Error
}

func (s subject) InTx(ctx context.Context, work func(emittest.Tx) error) error {
	return s.Emitter.InTx(ctx, s.db, func(tx *gorm.DB) error { return work(transaction{tx, s.Emitter}) })
}

type transaction struct {
	tx      *gorm.DB
	emitter *outboxgorm.Emitter
}

func (t transaction) Emit(ctx context.Context, event outbox.Event) (outbox.Emitted, error) {
	return t.emitter.Emit(ctx, t.tx, event)
}

func (t transaction) EmitMany(ctx context.Context, events []outbox.Event) ([]outbox.Emitted, error) {
	return t.emitter.EmitMany(ctx, t.tx, events)
}

func (t transaction) Exec(ctx context.Context, query string) error {
	return t.tx.WithContext(ctx).Exec(query).Error
}

func (t transaction) Commit(context.Context) error   { return t.tx.Commit().Error }
func (t transaction) Rollback(context.Context) error { return t.tx.Rollback().Error }
