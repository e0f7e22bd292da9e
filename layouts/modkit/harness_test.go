package modkit_test

import (
	"cmp"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bed is a ModKit table in its own database.
type bed struct {
	*testing.T
	url     string
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	logs    *logtest.Log
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, url: pgtest.URL(t), logs: &logtest.Log{}}
	b.pool = pgtest.Connect(t, b.url)
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, b.pool, "", files)
	if b.emitter, err = outboxpgx.New(modkit.Layout(), outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// enqueue commits events, or n plain ones.
func (b *bed) enqueue(n int, events ...outbox.Event) []uuid.UUID {
	b.Helper()
	for range n {
		events = append(events, layouttest.Event("modkit"))
	}
	ids := make([]uuid.UUID, len(events))
	err := b.emitter.InTx(b.Context(), b.pool, func(tx pgx.Tx) error {
		emitted, err := b.emitter.EmitMany(b.Context(), tx, events)
		for i := range emitted {
			ids[i] = emitted[i].ID
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

// row is the row of an event.
type row struct {
	status   string
	attempts int
	// held is whether it has an owner and a lease, both or neither.
	held      bool
	owner     string
	lastError string
	// dueIn and updated are by the database's clock.
	dueIn   time.Duration
	updated time.Time
}

func (b *bed) row(id uuid.UUID) (r row) {
	b.Helper()
	var locked, leased bool
	var seconds float64
	err := b.pool.QueryRow(b.Context(), `
		SELECT status, attempts, locked_by IS NOT NULL, locked_until IS NOT NULL, coalesce(locked_by::text, ''),
			coalesce(last_error, ''), extract(epoch FROM next_attempt_at - now())::float8, updated_at
		FROM modkit_outbox_events WHERE id = $1`, id).
		Scan(&r.status, &r.attempts, &locked, &leased, &r.owner, &r.lastError, &seconds, &r.updated)
	if err != nil {
		b.Fatal(err)
	}
	if r.held = locked; locked != leased {
		b.Errorf("event %s has an owner: %t, a lease: %t", id, locked, leased)
	}
	r.dueIn = time.Duration(seconds * float64(time.Second))
	return r
}

// want fails unless a row has a status and a number of attempts.
func (b *bed) want(id uuid.UUID, status string, attempts int) row {
	b.Helper()
	r := b.row(id)
	if r.status != status || r.attempts != attempts || r.held != (status == "processing") {
		b.Errorf("event %s is %s after %d attempts, held: %t; want %s after %d", id, r.status, r.attempts, r.held, status, attempts)
	}
	return r
}

func (b *bed) awaitDelivered(id uuid.UUID) {
	b.Helper()
	await.Until(b, "event "+id.String()+" to be delivered", func() bool { return b.row(id).status == "delivered" })
}

// expire ends the leases of all rows.
func (b *bed) expire() {
	b.Helper()
	pgtest.Exec(b, b.pool, `UPDATE modkit_outbox_events SET locked_until = locked_until - interval '1 hour' WHERE status = 'processing'`)
}

// makeDue lets the delays of all rows pass.
func (b *bed) makeDue() {
	b.Helper()
	pgtest.Exec(b, b.pool, `UPDATE modkit_outbox_events SET next_attempt_at = now() WHERE status = 'pending'`)
}

// module returns a module for all namespaces, unless config says otherwise.
func (b *bed) module(config modkit.Config) *modkit.Module {
	b.Helper()
	config.Namespace = cmp.Or(config.Namespace, modkit.AllNamespaces)
	module, err := modkit.NewModule(b.pool, config)
	if err != nil {
		b.Fatal(err)
	}
	return module
}

// claimAll claims all that is due.
func (b *bed) claimAll(module *modkit.Module) []modkit.ClaimedMessage {
	b.Helper()
	messages, err := module.ClaimBatch(b.Context(), modkit.ClaimCfg{BatchSize: 100})
	if err != nil {
		b.Fatal(err)
	}
	return messages
}

// claim claims all that is due, and expects a number of messages.
func (b *bed) claim(module *modkit.Module, want int) []modkit.ClaimedMessage {
	b.Helper()
	messages := b.claimAll(module)
	if len(messages) != want {
		b.Fatalf("claimed %d messages, want %d", len(messages), want)
	}
	return messages
}

func (b *bed) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b.logs, nil)) }

// dispatcher returns a dispatcher that polls often.
func (b *bed) dispatcher(module modkit.Config, config modkit.DispatcherConfig, handle modkit.Handler) *outbox.Relay {
	b.Helper()
	config.PollInterval, config.Logger, config.Otherwise = 20*time.Millisecond, b.logger(), handle
	relay, err := modkit.NewDispatcher(b.module(module), config)
	if err != nil {
		b.Fatal(err)
	}
	return relay
}

// dispatch runs a dispatcher until the end of the test.
func (b *bed) dispatch(module modkit.Config, config modkit.DispatcherConfig, handle modkit.Handler) {
	b.Helper()
	relay := b.dispatcher(module, config, handle)
	if err := relay.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { outboxtest.Stop(b, relay) })
}
