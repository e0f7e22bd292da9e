package pgstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestLockedRowsArePassedOver has somebody hold a row in an open transaction. Whoever meets it takes the
// others and does not wait: a session that waits for any lock ends with an error.
func TestLockedRowsArePassedOver(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"packfinderz", "doorito", "modkit", "ours"} {
		tests := map[string]func(t *testing.T, l *lockedRow){"claim": testLockedClaim, "purge": testLockedPurge}
		if layout == "modkit" || layout == "ours" {
			tests["claim of what ran out"], tests["sweep"] = testLockedReclaim, testLockedSweep
		}
		for what, test := range tests {
			t.Run(layout+"/"+what, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, layout)
				test(t, &lockedRow{harness: h, ids: h.Emit(t, 3)})
			})
		}
	}
}

// lockedRow is a table with three events, the first of which somebody locks.
type lockedRow struct {
	*harness
	ids []uuid.UUID
}

// lock locks the first row until the end of the test.
func (l *lockedRow) lock(t *testing.T) {
	t.Helper()
	pgtest.Hold(t, l.pool, fmt.Sprintf(`SELECT FROM %s WHERE %s = $1 FOR UPDATE`,
		l.table(), pgx.Identifier{l.layout.Columns.ID.Name}.Sanitize()), l.ids[0])
}

// impatient opens a store whose sessions do not wait for locks.
func (l *lockedRow) impatient(t *testing.T) *pgstore.Store {
	t.Helper()
	config, err := pgxpool.ParseConfig(l.url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["lock_timeout"] = "5s"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return l.openOn(t, pool, pgstore.Config{MaxAttempts: 2})
}

// settleAll claims and settles what there is with one outcome.
func (l *lockedRow) settleAll(t *testing.T, outcome outbox.Outcome) {
	t.Helper()
	batch, err := l.open(t, pgstore.Config{}).Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Abandon()
	if _, err := batch.Settle(t.Context(), slices.Repeat([]outbox.Outcome{outcome}, len(batch.Messages()))); err != nil {
		t.Fatal(err)
	}
}

// wantOthers has the store claim the two events that are free.
func (l *lockedRow) wantOthers(t *testing.T) {
	t.Helper()
	batch, err := l.impatient(t).Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatalf("a claim beside a locked row: %v", err)
	}
	defer batch.Abandon()
	var got []uuid.UUID
	for _, message := range batch.Messages() {
		got = append(got, message.ID)
	}
	if !slices.Equal(got, l.ids[1:]) {
		t.Errorf("claimed %v, want %v", got, l.ids[1:])
	}
}

func testLockedClaim(t *testing.T, l *lockedRow) {
	t.Helper()
	l.lock(t)
	l.wantOthers(t)
}

func testLockedReclaim(t *testing.T, l *lockedRow) {
	t.Helper()
	if _, err := l.open(t, pgstore.Config{}).Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	l.Expire(t)
	l.lock(t)
	l.wantOthers(t)
}

func testLockedSweep(t *testing.T, l *lockedRow) {
	t.Helper()
	if _, err := l.open(t, pgstore.Config{}).Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	l.Expire(t)
	pgtest.Exec(t, l.pool, fmt.Sprintf(`UPDATE %s SET %s = 2`, l.table(), l.layout.Columns.Attempts.Name))
	l.lock(t)
	if n, err := l.impatient(t).Sweep(t.Context()); err != nil || n != 2 {
		t.Errorf("a sweep beside a locked row moved %d events, want 2: %v", n, err)
	}
	for _, id := range l.ids[1:] {
		if got := l.State(t, id).Status; got != storetest.Dead {
			t.Errorf("event %s is %s after the sweep", id, got)
		}
	}
}

func testLockedPurge(t *testing.T, l *lockedRow) {
	t.Helper()
	l.settleAll(t, outbox.Outcome{Kind: outbox.Delivered})
	l.Age(t, 48*time.Hour)
	l.lock(t)
	if n, err := l.impatient(t).Purge(t.Context(), outbox.Purge{Retention: time.Hour}); err != nil || n != 2 {
		t.Errorf("a purge beside a locked row deleted %d events, want 2: %v", n, err)
	}
}

// TestLocksEndWithTheLease has a worker stand still with a claim that is only locked, as SIGSTOP does: the server ends its
// transaction after the lease, and others get the rows.
func TestLocksEndWithTheLease(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"packfinderz", "doorito"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			h.Emit(t, 2)
			still, err := h.Open(t, storetest.Options{Lease: time.Second}).Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
			if err != nil || len(still.Messages()) != 2 {
				t.Fatalf("claimed %v: %v", still, err)
			}
			t.Cleanup(still.Abandon) // or a pool that is closed would wait for it
			other := h.Open(t, storetest.Options{Lease: time.Minute})
			await.Until(t, "the rows of a worker that stands still", func() bool {
				batch, err := other.Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer batch.Abandon()
				return len(batch.Messages()) == 2
			})
			if _, err := still.Settle(t.Context(), make([]outbox.Outcome, 2)); err == nil {
				t.Error("a claim whose transaction the server has ended was settled")
			}
		})
	}
}
