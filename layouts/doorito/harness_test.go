package doorito_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstore"
)

// later is a first delay that outlasts every test.
const later = time.Hour

// bed is a service with the contract's table: it emits, and its own relay calls handlers.
type bed struct {
	*testing.T
	layout layouts.Layout
	pool   *pgxpool.Pool
	store  *pgstore.Store
	set    *handlers.Publisher
	relay  *outbox.Relay
	// emitter nudges the relay.
	emitter *outboxpgx.Emitter
}

// newBed creates the table with the shipped migrations.
func newBed(t *testing.T) *bed {
	t.Helper()
	pool := pgtest.Pool(t)
	files, err := doorito.Migrations(doorito.Layout())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	return newBedOn(t, pool, doorito.Layout())
}

// newBedOn returns a service on an existing table. Its relay does not run yet.
func newBedOn(t *testing.T, pool *pgxpool.Pool, layout layouts.Layout) *bed {
	t.Helper()
	b := &bed{T: t, layout: layout, pool: pool}
	var err error
	if b.store, err = pgstore.New(pool, layout, pgstore.Config{}); err != nil {
		t.Fatal(err)
	}
	b.deploy()
	return b
}

// deploy starts over with no handlers, as a new version of the service does.
func (b *bed) deploy() {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if b.set, err = handlers.New(handlers.Config{RetryUnknown: true, Logger: quiet}); err != nil {
		b.Fatal(err)
	}
	b.relay, err = outbox.NewRelay(outbox.RelayConfig{
		Store: b.store, Publisher: b.set, Logger: quiet, Poll: 20 * time.Millisecond,
		Retry: outbox.RetryPolicy{Base: later, Max: 1000 * later},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.nudges(b.relay.Nudge)
}

// nudges sets what is called after a commit.
func (b *bed) nudges(nudge func()) {
	b.Helper()
	var err error
	if b.emitter, err = outboxpgx.New(b.layout, outbox.EmitConfig{Nudge: nudge}); err != nil {
		b.Fatal(err)
	}
}

// handle registers a handler.
func (b *bed) handle(eventType string, call handlers.Func) {
	b.Helper()
	if err := b.set.Register(eventType, "test", call); err != nil {
		b.Fatal(err)
	}
}

// start runs the relay until the end of the test.
func (b *bed) start() {
	b.Helper()
	if err := b.relay.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { outboxtest.Stop(b, b.relay) })
}

// emit is a request that stores a file: it must succeed, whatever happens to the event.
func (b *bed) emit(options ...doorito.Option) uuid.UUID {
	b.Helper()
	var emitted outbox.Emitted
	err := b.emitter.InTx(b.Context(), b.pool, func(tx pgx.Tx) (err error) {
		emitted, err = doorito.EmitEvent(b.Context(), b.emitter, tx, "UploadFile", "42", "file.stored",
			map[string]any{"size": 7}, options...)
		return err
	})
	if err != nil {
		b.Fatalf("the request failed: %v", err)
	}
	return emitted.ID
}

// makeDue makes an event's next attempt due.
func (b *bed) makeDue(id uuid.UUID) {
	b.Helper()
	pgtest.Exec(b.T, b.pool, `UPDATE `+b.table()+` SET next_attempt_at = now() WHERE id = $1`, id)
	b.relay.Nudge()
}

func (b *bed) table() string { return pgx.Identifier{b.layout.Table}.Sanitize() }

// row is a row of the contract's table. Its times are by the database's clock.
type row struct {
	ID                                  uuid.UUID
	AggregateType, AggregateID          string
	EventType                           string
	Payload                             string
	Status                              string
	IdempotencyKey                      string
	Attempts, MaxAttempts               int
	NextAttemptAt, DeliveredAt          *time.Time
	ErrorMessage                        string
	CreatedAt, UpdatedAt, DatabaseClock time.Time
}

func (b *bed) row(id uuid.UUID) row {
	b.Helper()
	rows, err := b.pool.Query(b.Context(), `
		SELECT id, aggregate_type, aggregate_id, event_type, payload, status, idempotency_key, attempts, max_attempts,
			next_attempt_at, delivered_at, error_message, created_at, updated_at, clock_timestamp()
		FROM `+b.table()+` WHERE id = $1`, id)
	if err != nil {
		b.Fatal(err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[row])
	if err != nil {
		b.Fatalf("event %s: %v", id, err)
	}
	return found
}

// await waits until an event has a status and a number of attempts.
func (b *bed) await(id uuid.UUID, status string, attempts int) row {
	b.Helper()
	var found row
	await.Until(b.T, "event "+id.String()+" to be "+status, func() bool {
		found = b.row(id)
		switch {
		case !slices.Contains([]string{"pending", "delivered", "failed"}, found.Status):
			b.Fatalf("event %s is %q, which is no status of the contract", id, found.Status)
		case status == "failed" && found.Status == "pending" && found.Attempts >= attempts:
			b.Fatalf("event %s waits for another attempt after %d of %d", id, found.Attempts, found.MaxAttempts)
		}
		return found.Status == status && found.Attempts == attempts
	})
	return found
}
