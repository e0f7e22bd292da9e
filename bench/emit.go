package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	// emitsPerRound is how many events one round of single emits writes.
	emitsPerRound = 1000
	emitCeiling   = 1.10 // of the same INSERT by hand
	manyFloor     = 5.0  // times as fast, per event, as single emits
)

// payload is 308 bytes of JSON, as in every measurement here.
func payload() []byte {
	return []byte(`{"order": 42, "note": "` + strings.Repeat("x", 308-25) + `"}`)
}

// byHand is the INSERT a careful team writes itself, with its arguments.
type byHand struct {
	sql  string
	args func() []any
}

func handwritten(layout string) byHand {
	aggregate := uuid.New()
	body := payload()
	switch layout {
	case "packfinderz":
		return byHand{
			`INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, attempt_count, last_error, created_at, published_at)
			 VALUES ($1, $2, $3, $4, $5, 0, NULL, now(), NULL)`,
			func() []any {
				return []any{uuid.Must(uuid.NewV7()), "order_created", "vendor_order", aggregate, body}
			},
		}
	case "doorito":
		return byHand{
			`INSERT INTO outbox_event (id, event_type, aggregate_type, aggregate_id, idempotency_key, payload, max_attempts,
			   next_attempt_at, status, attempts, error_message, created_at, updated_at, delivered_at)
			 VALUES ($1, $2, $3, $4, $5, $6, $7, now(), 'pending', 0, '', now(), now(), NULL)`,
			func() []any {
				id := uuid.Must(uuid.NewV7())
				return []any{id, "file.stored", "UploadFile", "42", id.String(), body, 5}
			},
		}
	case pgstream.LayoutName:
		return byHand{
			`INSERT INTO outbox_stream (shard, id, namespace, topic, type, key, aggregate_type, aggregate_id, tenant_id, headers,
			   content_type, payload, not_before, max_attempts)
			 VALUES (outbox_shard($5, $1), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			func() []any {
				return []any{
					uuid.Must(uuid.NewV7()), nil, "orders", "order_created", "order/42", "order", "42", nil, nil, "application/json", body, nil, nil,
				}
			},
		}
	default:
		return byHand{
			`INSERT INTO modkit_outbox_events (id, namespace, topic, tenant_id, dedupe_key, payload, next_attempt_at, status,
			   attempts, locked_by, locked_until, last_error, created_at, updated_at)
			 VALUES ($1, $2, $3, $4, $5, $6, now(), 'pending', 0, NULL, NULL, NULL, now(), now())`,
			func() []any {
				return []any{uuid.Must(uuid.NewV7()), "shop", "orders", nil, nil, body}
			},
		}
	}
}

// event is the same event for the emitter.
func event(layout string) outbox.Event {
	switch layout {
	case "packfinderz":
		return outbox.Event{Type: "order_created", AggregateType: "vendor_order", AggregateID: uuid.NewString(), Payload: payload()}
	case "doorito":
		return outbox.Event{Type: "file.stored", AggregateType: "UploadFile", AggregateID: "42", Payload: payload()}
	case pgstream.LayoutName:
		return outbox.Event{
			Topic: "orders", Type: "order_created", AggregateType: "order", AggregateID: "42", ContentType: "application/json", Payload: payload(),
		}
	default:
		return outbox.Event{Namespace: "shop", Topic: "orders", Payload: payload()}
	}
}

// benchEmit measures what emit adds to the INSERT it runs, and what EmitMany saves.
func benchEmit(ctx context.Context, b *bench) error {
	for _, shipped := range shipped.All() {
		files, err := shipped.Migrations(shipped.Layout)
		if err != nil {
			return err
		}
		if err := benchEmitTarget(ctx, b, shipped.Layout.Name, shipped.Layout, files); err != nil {
			return fmt.Errorf("%s: %w", shipped.Layout.Name, err)
		}
	}
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		return err
	}
	if err := benchEmitTarget(ctx, b, pgstream.LayoutName, pgstream.Stream{}, files); err != nil {
		return fmt.Errorf("%s: %w", pgstream.LayoutName, err)
	}
	return nil
}

func benchEmitTarget(ctx context.Context, b *bench, name string, target outbox.Target, files fs.FS) error {
	pool, err := b.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrateFiles(ctx, pool, files); err != nil {
		return err
	}
	emitter, err := outboxpgx.New(target, outbox.EmitConfig{})
	if err != nil {
		return err
	}
	hand, ours := handwritten(name), event(name)
	// A round is a transaction. Its commit is the same for both sides and is not timed.
	inTx := func(work func(tx pgx.Tx) error) func() (time.Duration, error) {
		return func() (took time.Duration, err error) {
			err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				start := time.Now()
				err := work(tx)
				took = time.Since(start)
				return err
			})
			return took, err
		}
	}
	single := inTx(func(tx pgx.Tx) error {
		for range emitsPerRound {
			if _, err := emitter.Emit(ctx, tx, ours); err != nil {
				return err
			}
		}
		return nil
	})
	r, a, z, err := ratio(inTx(func(tx pgx.Tx) error { return insertByHand(ctx, tx, hand) }), single)
	if err != nil {
		return err
	}
	b.promise(name+": emit / INSERT by hand", r <= emitCeiling, "%.3f (at most %.2f; %s and %s an event)",
		r, emitCeiling, z/emitsPerRound, a/emitsPerRound)

	batch := make([]outbox.Event, emitsPerRound)
	for i := range batch {
		batch[i] = ours
	}
	emitMany := func(tx pgx.Tx) error {
		_, err := emitter.EmitMany(ctx, tx, batch)
		return err
	}
	// As callers have it: a single emit comes with a transaction of its own.
	r, a, z, err = ratio(
		timed(func() error { return emitter.InTx(ctx, pool, emitMany) }),
		timed(func() error {
			for range emitsPerRound {
				if err := emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
					_, err := emitter.Emit(ctx, tx, ours)
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		}))
	if err != nil {
		return err
	}
	b.promise(name+": single emits / EmitMany of 1,000", r >= manyFloor, "%.1f (at least %.0f; %s and %s an event)",
		r, manyFloor, z/emitsPerRound, a/emitsPerRound)

	// The statements alone. What is left of an event then is mostly its place in the indexes,
	// which many events have to have as one.
	r, a, z, err = ratio(inTx(emitMany), single)
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %.1f (%s and %s an event)\n", name+": the same within one transaction", r, z/emitsPerRound, a/emitsPerRound)
	return nil
}

func timed(work func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		start := time.Now()
		err := work()
		return time.Since(start), err
	}
}

func insertByHand(ctx context.Context, tx pgx.Tx, hand byHand) error {
	for range emitsPerRound {
		if _, err := tx.Exec(ctx, hand.sql, hand.args()...); err != nil {
			return err
		}
	}
	return nil
}

// migrate makes a layout's tables.
func migrate(ctx context.Context, pool *pgxpool.Pool, shipped shipped.Layout) error {
	files, err := shipped.Migrations(shipped.Layout)
	if err != nil {
		return err
	}
	return migrateFiles(ctx, pool, files)
}

// migrateFiles applies the files of a table that is the only one of its database.
func migrateFiles(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	return migrations.Set{Layout: "bench", Table: "bench", Files: migrations.Static(files)}.Up(ctx, pool)
}
