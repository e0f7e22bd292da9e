package pgstore_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestNullAttempts has rows of a table that came with its owner, which let the count of attempts, and the time at which a
// row was made, be NULL. No attempt is what the first means; the event is delivered, retried and buried as others are.
func TestNullAttempts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"packfinderz", "doorito", "modkit", "ours"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, name)
			ids := h.emit(t, h.event(), h.event(), h.event(), h.event())
			columns := &h.layout.Columns
			table := h.table()
			pgtest.Exec(t, h.pool, `ALTER TABLE `+table+` DISABLE TRIGGER USER, ALTER "`+columns.Attempts.Name+`" DROP NOT NULL, ALTER "`+columns.CreatedAt.Name+`" DROP NOT NULL`)
			pgtest.Exec(t, h.pool, `UPDATE `+table+` SET "`+columns.Attempts.Name+`" = NULL, "`+columns.CreatedAt.Name+`" = NULL`)
			store := h.open(t, pgstore.Config{})
			batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: len(ids)})
			if err != nil {
				t.Fatal(err)
			}
			defer batch.Abandon()
			messages := batch.Messages()
			if len(messages) != len(ids) {
				t.Fatalf("%d of %d rows were claimed", len(messages), len(ids))
			}
			outcomes := []outbox.Outcome{
				{Kind: outbox.Delivered},
				{Kind: outbox.Failed, Error: "not yet"},
				{Kind: outbox.Died, Reason: outbox.ReasonTooLarge, Error: "never"},
				{Kind: outbox.Released},
			}
			want := []storetest.State{
				{Status: storetest.Delivered}, {Status: storetest.Pending, Attempts: 1}, {Status: storetest.Dead}, {Status: storetest.Pending},
			}
			for i := range messages {
				if m := &messages[i]; m.Invalid != nil || m.Attempt != 1 || m.CreatedAt.IsZero() {
					t.Errorf("claimed %+v of the row, want its first attempt", m)
				}
			}
			if lost, err := batch.Settle(t.Context(), outcomes); err != nil || len(lost) > 0 {
				t.Fatalf("settled with %v and %v", lost, err)
			}
			for i := range messages {
				got := h.State(t, messages[i].ID)
				if got.Status != want[i].Status || want[i].Status == storetest.Pending && got.Attempts != want[i].Attempts {
					t.Errorf("after %v the row is %+v, want %+v", outcomes[i].Kind, got, want[i])
				}
			}
			if _, err := store.Stats(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInfiniteAge has rows whose times are no times: they are counted, and have no age.
func TestInfiniteAge(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"packfinderz", "doorito", "modkit"} {
		h := newHarness(t, name)
		h.emit(t, h.event(), h.event())
		pgtest.Exec(t, h.pool, `ALTER TABLE `+h.table()+` DISABLE TRIGGER USER`)
		pgtest.Exec(t, h.pool, `UPDATE `+h.table()+` SET created_at = '-infinity'`)
		stats, err := h.open(t, pgstore.Config{}).Stats(t.Context())
		if err != nil || stats.Due != 2 || stats.OldestAge != 0 {
			t.Errorf("%s: got %+v (%v), want two events of no age", name, stats, err)
		}
	}
}
