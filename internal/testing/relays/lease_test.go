package relays_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestSlowBroker publishes for longer than the lease: it is renewed, and nobody else gets
// the rows.
func TestSlowBroker(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second // a machine that is busy has to find the time to renew it
	forEachStore(t, func(b *bed) {
		ids := b.emit(5)
		config := b.config(6, pgstore.Config{Lease: lease})
		publisher := slow{b.broker, make(chan struct{}, 100), make(chan struct{})}
		config.Publisher = publisher
		first := b.start(config)
		<-publisher.entered
		var entered time.Time
		if err := b.pool.QueryRow(b.Context(), `SELECT now()`).Scan(&entered); err != nil {
			b.Fatal(err)
		}
		config = b.config(6, pgstore.Config{Lease: lease})
		store, claims := watch(b.T, config)
		config.Store = store
		second := b.start(config)
		// The first lease is over, by the clock that counts, and then the other relay has looked.
		b.waitSQL(`SELECT now() > $1::timestamptz + $2::interval`, entered, lease+time.Second)
		for range 2 { // the first may have begun before
			<-claims
		}
		close(publisher.letGo)
		b.waitReceived(5)
		outboxtest.Stop(b, second)
		outboxtest.Stop(b, first)
		b.wantOnce(ids)
		if n := b.logs.Count("lease lost"); n != 0 {
			b.Errorf("a lease was lost %d times: %s", n, b.logs.Text())
		}
	})
}

// TestLeaseLost takes the rows away from a relay that is publishing them: the publish ends, since
// going on would only make duplicates, and the rows are left to whoever has them now.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	other := uuid.New()
	forEachStore(t, func(b *bed) {
		b.emit(2)
		config := b.config(6, pgstore.Config{Lease: 3 * time.Second})
		ended := make(chan error, 1)
		entered := make(chan struct{})
		config.Publisher = handOver(func(ctx context.Context, messages []outbox.Message) []error {
			close(entered)
			<-ctx.Done()
			ended <- ctx.Err()
			return slices.Repeat([]error{ctx.Err()}, len(messages))
		})
		config.BatchSize, config.PublishTimeout = 2, patience/2 // it ends before, and not by this
		settled := make(settledHook, 100)
		config.Hooks = []any{settled}
		relay := b.start(config)
		<-entered
		go outboxtest.Stop(b, relay) // claims no more
		pgtest.Exec(b.T, b.pool, map[string]string{
			"modkit":  `UPDATE modkit_outbox_events SET locked_by = '` + other.String() + `', locked_until = now() + interval '1 hour'`,
			"doorito": `UPDATE outbox_event SET next_attempt_at = now() + interval '1 hour'`,
			"packfinderz": `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle in transaction'`,
			stream: `UPDATE outbox_shards SET owner = '` + other.String() + `', fence = fence + 1, locked_until = now() + interval '1 hour'`,
		}[b.name])
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.Errorf("the publish ended with %v, want it cancelled when the lease was lost: %s", err, b.logs.Text())
		}
		outboxtest.Stop(b, relay)
		b.wantSQL(map[string]string{
			"modkit":      `SELECT bool_and(status = 'processing' AND locked_by = '` + other.String() + `' AND attempts = 1 AND last_error IS NULL) FROM modkit_outbox_events`,
			"doorito":     `SELECT bool_and(status = 'pending' AND next_attempt_at > now() + interval '50 minutes' AND attempts = 0) FROM outbox_event`,
			"packfinderz": `SELECT bool_and(published_at IS NULL AND attempt_count = 0) FROM outbox_events`,
			stream:        `SELECT bool_and(owner = '` + other.String() + `') AND NOT EXISTS (SELECT FROM outbox_parked) FROM outbox_shards`,
		}[b.name])
		if b.name == "packfinderz" {
			return // its settle fails as a whole
		}
		if report := <-settled; len(report) != 2 {
			b.Errorf("%d events were reported as lost, want 2", len(report))
		}
		if n := b.logs.Count("lease lost: the events are left to their new owner"); n != 1 {
			b.Errorf("the loss was logged %d times, want once: %s", n, b.logs.Text())
		}
		if b.logs.Count("event failed") > 0 {
			b.Errorf("an attempt of events that others have was announced: %s", b.logs.Text())
		}
	})
}

// settledHook passes on what was lost of each batch.
type settledHook chan []uuid.UUID

func (s settledHook) OnSettle(report outbox.BatchReport) { s <- report.Lost }
