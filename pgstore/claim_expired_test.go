package pgstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstore"
)

// TestExpiredIsFound has an event whose worker died, beside one that is due. Every claim finds it,
// before what is due or behind it; only where a look takes long it waits for ten times that.
func TestExpiredIsFound(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	expired := h.Emit(t, 1)[0]
	claimOne(t, h.open(t, pgstore.Config{}))
	h.Expire(t)
	due := h.Emit(t, 1)[0]
	// A lease of a day: the store does not look because a part of it has passed.
	store, err := pgstore.New(h.pool, h.layout, pgstore.Config{Lease: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		took   time.Duration
		passes time.Duration // since the last look
		limit  int
		want   []uuid.UUID
	}{
		"a quick look is first":                        {time.Millisecond, 0, 1, []uuid.UUID{expired}},
		"a quick look, both":                           {time.Millisecond, 0, 2, []uuid.UUID{expired, due}},
		"a slower look waits behind what is due":       {20 * time.Millisecond, 0, 1, []uuid.UUID{due}},
		"a slower look is made if there is room":       {20 * time.Millisecond, 0, 2, []uuid.UUID{due, expired}},
		"a slow look is not made at once":              {time.Hour, 0, 2, []uuid.UUID{due}},
		"a slow look is made after ten times its time": {time.Hour, 10 * time.Hour, 1, []uuid.UUID{expired}},
	} {
		store.LookTook(c.took)
		store.PassTime(c.passes)
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		var got []uuid.UUID
		for _, m := range batch.Messages() {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: claimed %v, want %v", name, got, c.want)
		}
		// Back to how it was.
		if _, err := batch.Settle(t.Context(), make([]outbox.Outcome, len(got))); err != nil {
			t.Fatal(err)
		}
		_, err = h.pool.Exec(t.Context(), `UPDATE modkit_outbox_events SET status = 'processing', attempts = 1, locked_by = gen_random_uuid(),
			locked_until = now() - interval '1 hour' WHERE id = $1`, expired)
		if err != nil {
			t.Fatal(err)
		}
	}
}
