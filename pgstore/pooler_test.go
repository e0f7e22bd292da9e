package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// poolerServers is how many sessions the poolers of these tests have: enough for the batches that are open at once, each of which may have one.
const poolerServers = 12

// pooled opens stores through a pooler, with a pool that knows nothing of it.
type pooled struct {
	*harness
	through string
}

func newPooled(t *testing.T, h *harness) pooled {
	t.Helper()
	through := pgbouncer.Start(t, h.url, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
	t.Cleanup(func() { pgbouncer.AssertNoTraces(t, h.url, through, poolerServers) })
	return pooled{h, through}
}

func (h pooled) Open(t *testing.T, options storetest.Options) outbox.Store {
	t.Helper()
	return h.openOn(t, connect(t, h.through, poolerServers), pgstore.Config{Lease: options.Lease, MaxAttempts: options.MaxAttempts, WorkerID: options.WorkerID})
}

// TestPoolerConformance runs the suite through a pooler in transaction mode, on a layout for each
// way to hold a row.
func TestPoolerConformance(t *testing.T) {
	t.Parallel()
	for name, features := range map[string]storetest.Features{
		"packfinderz": {DeliveredIsKept: true},
		"doorito":     {Backoff: true, DeliveredIsKept: true},
		"modkit":      {Expires: true, Backoff: true, DeliveredIsKept: true, CountsOnClaim: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, features, func(t *testing.T) storetest.Harness {
				t.Helper()
				return newPooled(t, newHarness(t, name))
			})
		})
	}
}

// TestQueryModes uses a store in every query mode of pgx, directly and through a pooler.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"packfinderz", "doorito", "modkit", "ours"} {
		for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
			for _, behind := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, pooled %t", name, mode, behind), func(t *testing.T) {
					t.Parallel()
					h := newHarness(t, name)
					address := h.url
					if behind {
						address = newPooled(t, h).through
					}
					useStore(t, h, h.openOn(t, connect(t, pgtest.WithMode(t, address, mode), poolerServers), pgstore.Config{Lease: time.Minute, MaxAttempts: 1}))
				})
			}
		}
	}
}

// useStore calls whatever a relay calls: it claims, renews, settles, counts, sweeps, retries and
// purges.
func useStore(t *testing.T, h *harness, store *pgstore.Store) {
	t.Helper()
	if err := store.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	ids := h.Emit(t, 4)
	settle := func(want int, kinds func(id uuid.UUID) outbox.Outcome) {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer batch.Abandon()
		if len(batch.Messages()) != want {
			t.Fatalf("claimed %d events, want %d", len(batch.Messages()), want)
		}
		if err := batch.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcomes := make([]outbox.Outcome, want)
		for i, m := range batch.Messages() {
			outcomes[i] = kinds(m.ID)
		}
		if lost, err := batch.Settle(t.Context(), outcomes); err != nil || len(lost) > 0 {
			t.Fatalf("settle: lost %v: %v", lost, err)
		}
	}
	settle(4, func(id uuid.UUID) outbox.Outcome {
		if id == ids[3] {
			return outbox.Outcome{Kind: outbox.Died, Error: "refused", Reason: outbox.ReasonMaxAttempts}
		}
		return outbox.Outcome{Kind: outbox.Delivered}
	})
	if stats, err := store.Stats(t.Context()); err != nil || stats.Dead != 1 || stats.Due != 0 {
		t.Errorf("stats: %+v: %v", stats, err)
	}
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if retried, err := store.Retry(t.Context(), ids[3]); err != nil || len(retried) != 1 {
		t.Errorf("retried %v: %v", retried, err)
	}
	settle(1, func(uuid.UUID) outbox.Outcome { return outbox.Outcome{Kind: outbox.Delivered} })
	h.Age(t, 2*time.Hour)
	for _, dry := range []bool{true, false} {
		if n, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour, DryRun: dry}); err != nil || n != 4 {
			t.Errorf("purge, dry run %t: %d events: %v", dry, n, err)
		}
	}
}
