package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestStrays has rows that no state accounts for: no claim takes them, and they are counted.
func TestStrays(t *testing.T) {
	t.Parallel()
	for layout, changes := range map[string][]string{
		"doorito": {"status = 'archived'", "next_attempt_at = NULL", "status = ''"},
		"modkit":  {"status = 'archived'", "status = 'processing', locked_until = NULL", "status = 'PENDING'"},
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			ids := h.Emit(t, len(changes)+1)
			for i, change := range changes {
				pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s WHERE id = $1`, h.table(), change), ids[i])
			}
			store := h.open(t, pgstore.Config{})
			stats, err := store.Stats(t.Context())
			if err != nil || stats.Strays != int64(len(changes)) || stats.Due != 1 {
				t.Errorf("got %+v (%v), want %d strays", stats, err, len(changes))
			}
			batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
			if err != nil || len(batch.Messages()) != 1 {
				t.Fatalf("claimed %v, %v", batch, err)
			}
			batch.Abandon()

			// Without the index the whole table would be read. The planner is told that it is large.
			pgtest.Exec(t, h.pool, fmt.Sprintf(`DROP INDEX "idx_%s_stray"`, h.layout.Table))
			pgtest.Exec(t, h.pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET cpu_tuple_cost = 1e6', current_database()); END $$`)
			stats, err = h.openOn(t, pgtest.Connect(t, h.url), pgstore.Config{}).Stats(t.Context())
			if err != nil || stats.Strays != outbox.NotCounted {
				t.Errorf("got %+v (%v), want strays that were not counted", stats, err)
			}
		})
	}
}
