package pgstream_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstream"
)

// poolerServers is how many sessions the poolers of these tests have: fewer than their clients.
const poolerServers = 3

// TestPoolerConformance runs the suite through a pooler in transaction mode, with a pool that
// knows nothing of it.
func TestPoolerConformance(t *testing.T) {
	t.Parallel()
	features := storetest.Features{Expires: true, Backoff: true, InOrder: true, KeepsShare: true}
	storetest.Run(t, features, func(t *testing.T) storetest.Harness {
		t.Helper()
		h := newHarness(t, pgstream.Shape{Shards: 1})
		through := pgbouncer.Start(t, h.url, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
		h.through = pgtest.Connect(t, through)
		t.Cleanup(func() { pgbouncer.AssertNoTraces(t, h.url, through, poolerServers) })
		return h
	})
}

// TestPoolerRotation empties a slot through a pooler in transaction mode: nothing of it stays behind in the sessions.
func TestPoolerRotation(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	through := pgbouncer.Start(t, h.url, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
	h.through = pgtest.Connect(t, through)
	store := h.open(t, pgstream.Config{})
	h.emitDaysAgo(t, 5, 3)
	drain(t, store)
	for _, dry := range []bool{true, false} {
		n, err := store.Purge(t.Context(), outbox.Purge{Retention: 72 * time.Hour, DryRun: dry, Progress: func(int64) {}})
		if err != nil || n != 3 {
			t.Errorf("purged %d events (dry run: %t), want 3: %v", n, dry, err)
		}
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != 0 {
		t.Errorf("%d events are left, want none", n)
	}
	store.Close()
	pgbouncer.AssertNoTraces(t, h.url, through, poolerServers)
}

// TestPoolerIsNoticed: the store says once that there is a pooler, and nothing without one.
func TestPoolerIsNoticed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	said := func() int {
		var log bytes.Buffer
		store := h.open(t, pgstream.Config{Connections: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		h.Emit(t, 100)
		deliverAll(t, store, 100)
		store.Close()
		return strings.Count(log.String(), "connection pooler")
	}
	if n := said(); n != 0 {
		t.Errorf("a pooler was noticed %d times on a direct connection", n)
	}
	h.through = pgtest.Connect(t, pgbouncer.Start(t, h.url, pgbouncer.Config{Mode: pgbouncer.Transaction}))
	if n := said(); n != 1 {
		t.Errorf("the pooler was noticed %d times, want 1", n)
	}
}

// deliverAll claims and settles until n events are delivered.
func deliverAll(t *testing.T, store *pgstream.Store, n int) {
	t.Helper()
	for n > 0 {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		outcomes := make([]outbox.Outcome, len(batch.Messages()))
		for i := range outcomes {
			outcomes[i].Kind = outbox.Delivered
		}
		if _, err := batch.Settle(t.Context(), outcomes); err != nil {
			t.Fatal(err)
		}
		n -= len(outcomes)
	}
}

// TestQueryModes uses a store in every query mode of pgx, directly and through a pooler.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		for _, pooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled %t", mode, pooled), func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, pgstream.Shape{})
				address := h.url
				if pooled {
					address = pgbouncer.Start(t, h.url, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
				}
				h.through = pgtest.Connect(t, pgtest.WithMode(t, address, mode))
				useStore(t, h)
			})
		}
	}
}

// useStore calls whatever a relay calls: it claims, parks, drains, buries, retries, counts, sweeps
// and purges.
func useStore(t *testing.T, h *harness) {
	t.Helper()
	store := h.open(t, pgstream.Config{Lease: time.Minute, MaxAttempts: 2})
	keys := []string{"a", "a", "b", "c", "", "b"}
	ids := emit(t, h.pool, keys...)
	// Every event of b fails until it is dead; the others arrive.
	delivered := make(map[uuid.UUID]int)
	dead := 0
	for len(delivered) < 4 || dead < 2 {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if err := batch.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcomes := make([]outbox.Outcome, len(batch.Messages()))
		for i, m := range batch.Messages() {
			switch {
			case m.Key != "b":
				outcomes[i] = outbox.Outcome{Kind: outbox.Delivered}
				delivered[m.ID]++
			case m.Attempt < 2:
				outcomes[i] = outbox.Outcome{Kind: outbox.Failed, Error: "refused"}
			default:
				outcomes[i] = outbox.Outcome{Kind: outbox.Died, Error: "refused", Reason: outbox.ReasonMaxAttempts}
				dead++
			}
		}
		if lost, err := batch.Settle(t.Context(), outcomes); err != nil || len(lost) > 0 {
			t.Fatalf("settle: lost %v: %v", lost, err)
		}
		store.PassTime()
	}
	if stats, err := store.Stats(t.Context()); err != nil || stats.Dead != 2 || stats.Due != 0 {
		t.Errorf("stats: %+v: %v", stats, err)
	}
	if idle, err := store.Idle(t.Context()); err != nil || !idle {
		t.Errorf("idle: %t: %v", idle, err)
	}
	if retried := h.Retry(t, store, ids[2], ids[5]); len(retried) != 2 {
		t.Errorf("retried %v", retried)
	}
	store.PassTime()
	deliverAll(t, store, 2)
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dry := range []bool{true, false} {
		if _, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour, DeadLetterRetention: time.Hour, DryRun: dry}); err != nil {
			t.Error(err)
		}
	}
	if err := store.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}
