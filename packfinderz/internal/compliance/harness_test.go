package compliance_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/compliance"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bench is a handler with a PostgreSQL and a Redis of its own.
type bench struct {
	*testing.T
	pool    *pgxpool.Pool
	redis   *redistest.Broker
	handler *compliance.Handler
}

func newBench(t *testing.T) *bench {
	t.Helper()
	_, pool := backendtest.Database(t)
	b := &bench{T: t, pool: pool, redis: redistest.New(t)}
	b.handler = b.another()
	return b
}

// another is a handler as another process has it.
func (b *bench) another() *compliance.Handler {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	manager, err := idempotency.NewManager(b.redis.Client(), idempotency.Config{Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := compliance.New(b.pool, manager, log)
	if err != nil {
		b.Fatal(err)
	}
	return handler
}

// deliver delivers an event once.
func (b *bench) deliver(message outbox.Message) error {
	return b.handler.Publish(b.Context(), []outbox.Message{message})[0]
}

// handled delivers an event once, which must succeed.
func (b *bench) handled(message outbox.Message) {
	b.Helper()
	if err := b.deliver(message); err != nil {
		b.Errorf("event %s: %v", message.ID, err)
	}
}

// notification is a row.
type notification struct {
	Type, Audience  string
	Store, License  uuid.UUID
	Status          payloads.LicenseStatus
	Reason, Message string
}

// notifications are those of an event.
func (b *bench) notifications(event uuid.UUID) []notification {
	b.Helper()
	rows, err := b.pool.Query(b.Context(),
		`SELECT type, audience, store_id, license_id, status, reason, message FROM notifications WHERE event_id = $1`, event)
	if err != nil {
		b.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[notification])
	if err != nil {
		b.Fatal(err)
	}
	return list
}

// wantOne fails unless the event has one notification.
func (b *bench) wantOne(event uuid.UUID) {
	b.Helper()
	if list := b.notifications(event); len(list) != 1 {
		b.Errorf("event %s has the notifications %+v, want one", event, list)
	}
}

// mark is what Redis knows of an event.
func (b *bench) mark(event uuid.UUID) string {
	return b.redis.Client().Get(b.Context(), key(event)).Val()
}

func key(event uuid.UUID) string { return "pf:evt:processed:compliance:" + event.String() }

// wantDown fails unless an error says that something is away: nothing about the event.
func wantDown(t *testing.T, err error) {
	t.Helper()
	if err == nil || outbox.Classify(err) != outbox.ClassUnavailable {
		t.Errorf("%v does not say that something is away", err)
	}
}
