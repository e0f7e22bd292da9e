package doorito_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

// A file and its event are stored in one transaction.
func ExampleEmitEvent() {
	ctx := context.Background()
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	emitter, err := outboxpgx.New(doorito.Layout(), outbox.EmitConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // the client did not hear the first answer, and asks again
		err = emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO files (id, name) VALUES (42, 'cat.png') ON CONFLICT DO NOTHING`); err != nil {
				return err
			}
			emitted, err := doorito.EmitEvent(ctx, emitter, tx, "UploadFile", "42", "file.stored", map[string]any{
				"name":      "cat.png",
				"owner":     uuid.Max,
				"stored_at": time.Date(2026, 2, 26, 9, 30, 0, 100_000_000, time.UTC),
			}, doorito.IdempotencyKey("upload-42"))
			fmt.Println("already enqueued:", emitted.AlreadyEnqueued)
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	var payload string
	err = pool.QueryRow(ctx, `SELECT payload FROM outbox_event`).Scan(&payload)
	fmt.Println(payload, err)
	// Output:
	// already enqueued: false
	// already enqueued: true
	// {"name": "cat.png", "owner": "ffffffff-ffff-ffff-ffff-ffffffffffff", "stored_at": "2026-02-26T09:30:00.100Z"} <nil>
}

// The other half: handlers by event type, and a relay that is woken by each commit of this process
// and looks by itself for what others committed.
func Example() {
	ctx := context.Background()
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	if err := deliver(ctx, pool); err != nil {
		fmt.Println(err)
	}
	// Output:
	// make a thumbnail of {"name": "cat.png"}
}

func deliver(ctx context.Context, pool *pgxpool.Pool) (err error) {
	// An event whose type has no handler is tried again: its handler may come with the next deploy.
	set, err := handlers.New(handlers.Config{RetryUnknown: true})
	if err != nil {
		return err
	}
	handled := make(chan string)
	err = set.Register("file.stored", "thumbnail", func(_ context.Context, message outbox.Message) error {
		handled <- "make a thumbnail of " + string(message.Payload)
		return nil
	})
	if err != nil {
		return err
	}
	store, err := pgstore.New(pool, doorito.Layout(), pgstore.Config{})
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: set, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := relay.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.Stop(context.WithoutCancel(ctx))) }()

	emitter, err := outboxpgx.New(doorito.Layout(), outbox.EmitConfig{Nudge: relay.Nudge})
	if err != nil {
		return err
	}
	err = emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := doorito.EmitEvent(ctx, emitter, tx, "UploadFile", "42", "file.stored", map[string]any{"name": "cat.png"})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println(<-handled)
	return nil
}

// ExampleEncode is a payload as Django's encoder would write it.
func ExampleEncode() {
	document, err := doorito.Encode(struct {
		ID       uuid.UUID `json:"id"`
		StoredAt time.Time `json:"stored_at"`
	}{uuid.Max, time.Date(2026, 2, 26, 9, 30, 0, 123_456_789, time.UTC)})
	fmt.Println(string(document), err)
	// Output: {"id":"ffffffff-ffff-ffff-ffff-ffffffffffff","stored_at":"2026-02-26T09:30:00.123Z"} <nil>
}

// exampleDatabase is a PostgreSQL with an application's files and the contract's table.
func exampleDatabase() (*pgxpool.Pool, func(), error) {
	table, err := doorito.Migrations(doorito.Layout())
	if err != nil {
		return nil, nil, err
	}
	return pgtest.Example(`CREATE TABLE files (id bigint PRIMARY KEY, name text NOT NULL)`, table)
}
