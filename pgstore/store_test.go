package pgstore_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestConformance runs the suite on the three shipped layouts and one custom one.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, features := range map[string]storetest.Features{
		"packfinderz": {DeliveredIsKept: true},
		"doorito":     {Backoff: true, DeliveredIsKept: true},
		"modkit":      {Expires: true, Backoff: true, DeliveredIsKept: true, CountsOnClaim: true},
		"ours":        {Expires: true, Backoff: true, DeliveredIsKept: true, CountsOnClaim: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, features, func(t *testing.T) storetest.Harness {
				t.Helper()
				return newHarness(t, name)
			})
		})
	}
	t.Run("packfinderz, as another team has it", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, storetest.Features{DeliveredIsKept: true}, func(t *testing.T) storetest.Harness {
			t.Helper()
			return otherTeams(t)
		})
	})
	t.Run("doorito, renewed", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, storetest.Features{Expires: true, Backoff: true, DeliveredIsKept: true}, func(t *testing.T) storetest.Harness {
			t.Helper()
			return renewed{newHarness(t, "doorito")}
		})
	})
}

// otherTeams is the PackFinderz table with another column for the payload, and letters that cannot say that they were retried.
func otherTeams(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, "packfinderz")
	pgtest.Exec(t, h.pool, `
		ALTER TABLE outbox_events RENAME COLUMN payload_json TO payload;
		ALTER TABLE outbox_dlq RENAME COLUMN payload_json TO payload;
		ALTER TABLE outbox_dlq DROP COLUMN retried_at CASCADE;
		CREATE INDEX ON outbox_dlq (failed_at)`)
	h.layout.Columns.Payload.Name, h.layout.DeadLetter.Columns.Payload.Name = "payload", "payload"
	h.layout.DeadLetter.Columns.RetriedAt = layouts.Column{}
	var err error
	if h.emitter, err = outboxpgx.New(h.layout, outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
	return h
}

// A retry of a letter that cannot be marked takes it away, and the event goes out.
func TestRetryWithoutAMark(t *testing.T) {
	t.Parallel()
	h := otherTeams(t)
	store := h.open(t, pgstore.Config{MaxAttempts: 1})
	id := h.Emit(t, 1)[0]
	settle := func(outcome outbox.Outcome) {
		if _, err := claimOne(t, store).Settle(t.Context(), []outbox.Outcome{outcome}); err != nil {
			t.Fatal(err)
		}
	}
	settle(outbox.Outcome{Kind: outbox.Died, Reason: outbox.ReasonRejected, Error: "no"})
	letters := func() (n int) {
		if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox_dlq`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := letters(); n != 1 {
		t.Fatalf("%d letters of a dead event", n)
	}
	if retried := h.Retry(t, store, id); len(retried) != 1 || letters() != 0 {
		t.Errorf("retried %v, and %d letters are left", retried, letters())
	}
	settle(outbox.Outcome{Kind: outbox.Delivered})
}

// renewed opens stores whose batches have been renewed once: deferred rows are marked then, and no longer locked.
type renewed struct{ *harness }

func (h renewed) Open(t *testing.T, options storetest.Options) outbox.Store {
	t.Helper()
	return renewing{h.harness.Open(t, options)}
}

func (h renewed) Retry(t *testing.T, store outbox.Store, ids ...uuid.UUID) []uuid.UUID {
	t.Helper()
	if wrapped, ok := store.(renewing); ok {
		store = wrapped.Store
	}
	return h.harness.Retry(t, store, ids...)
}

type renewing struct{ outbox.Store }

func (s renewing) Claim(ctx context.Context, request outbox.ClaimRequest) (outbox.Batch, error) {
	batch, err := s.Store.Claim(ctx, request)
	if err != nil || len(batch.Messages()) == 0 {
		return batch, err
	}
	if err := batch.Renew(ctx); err != nil {
		batch.Abandon()
		return nil, err
	}
	return batch, nil
}

// TestDeferredBatch: a claim leaves its rows as they are; only a renewal marks them and ends the claim's transaction.
func TestDeferredBatch(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "doorito")
	store := h.open(t, pgstore.Config{Lease: time.Minute})
	id := h.Emit(t, 1)[0]
	idle := func() (sessions int) {
		err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'idle in transaction'`).Scan(&sessions)
		if err != nil {
			t.Fatal(err)
		}
		return sessions
	}
	before := h.row(t, id)
	batch := claimOne(t, store)
	defer batch.Abandon()
	if after := h.row(t, id); !reflect.DeepEqual(before, after) {
		t.Errorf("the row was\n%v\nand is after a claim\n%v", before, after)
	}
	if n := idle(); n != 1 {
		t.Errorf("%d open transactions after a claim, want 1", n)
	}
	for range 2 {
		var before, due time.Time
		if err := h.pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&before); err != nil {
			t.Fatal(err)
		}
		if err := batch.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.pool.QueryRow(t.Context(), `SELECT next_attempt_at FROM outbox_event`).Scan(&due); err != nil {
			t.Fatal(err)
		}
		if least := before.Add(time.Minute); due.Before(least) {
			t.Errorf("the row is due at %s after a renewal, want a minute from then: at least %s", due, least)
		}
		if n := idle(); n != 0 {
			t.Errorf("%d open transactions after a renewal, want none", n)
		}
	}
	other, err := h.open(t, pgstore.Config{}).Claim(t.Context(), outbox.ClaimRequest{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Abandon()
	if n := len(other.Messages()); n > 0 {
		t.Errorf("another store claimed %d events of a renewed batch", n)
	}
	if lost, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}}); err != nil || len(lost) > 0 {
		t.Errorf("the settle lost %v: %v", lost, err)
	}
	if got := h.State(t, id).Status; got != storetest.Delivered {
		t.Errorf("the event is %s", got)
	}
}

// TestSettleTakesItsOwnTime settles some time after the claim, whose transaction may still be open: what
// is written is the time of the settle, and a delay begins there.
func TestSettleTakesItsOwnTime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"packfinderz", "doorito", "modkit", "ours"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, name)
			columns := &h.layout.Columns
			for column, outcome := range map[string]outbox.Outcome{
				columns.DeliveredAt.Name:   {Kind: outbox.Delivered},
				columns.UpdatedAt.Name:     {Kind: outbox.Delivered},
				columns.NextAttemptAt.Name: {Kind: outbox.Failed, Error: "busy", Delay: time.Hour},
			} {
				if column == "" {
					continue
				}
				id := h.Emit(t, 1)[0]
				batch := claimOne(t, h.open(t, pgstore.Config{}))
				var claimed, written time.Time
				if err := h.pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&claimed); err != nil {
					t.Fatal(err)
				}
				if lost, err := batch.Settle(t.Context(), []outbox.Outcome{outcome}); err != nil || len(lost) > 0 {
					t.Fatalf("the settle lost %v: %v", lost, err)
				}
				batch.Abandon()
				err := h.pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT %s FROM %s WHERE %s = $1`,
					column, h.table(), columns.ID.Name), id).Scan(&written)
				if err != nil {
					t.Fatal(err)
				}
				if least := claimed.Add(outcome.Delay); written.Before(least) {
					t.Errorf("%s: %s is %s, want at least %s", outcome.Kind, column, written, least)
				}
			}
		})
	}
}

// TestRenewIsAnUpdate has a claim be kept: the row says when it was changed last, as after every other change.
func TestRenewIsAnUpdate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"doorito", "modkit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, name)
			h.Emit(t, 1)
			batch := claimOne(t, h.open(t, pgstore.Config{}))
			defer batch.Abandon()
			updated := func() (at time.Time) {
				t.Helper()
				if err := h.pool.QueryRow(t.Context(), `SELECT updated_at FROM `+h.table()).Scan(&at); err != nil {
					t.Fatal(err)
				}
				return at
			}
			for range 2 { // the first may be what marks the row
				before := updated()
				if err := batch.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
				if after := updated(); !after.After(before) {
					t.Errorf("a renewed claim was changed at %s, as before", after)
				}
			}
		})
	}
}
