package pgstream_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestPoolerHidesCrash: a crash takes back the last settles, and the pooler keeps the relay's
// connection. What the table calls unread is read, whatever the relay remembers.
func TestPoolerHidesCrash(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	h.through = pgtest.Connect(t, pgbouncer.Start(t, h.url, pgbouncer.Config{Mode: pgbouncer.Transaction}))
	store := h.open(t, pgstream.Config{})
	h.Emit(t, 10)
	deliverAll(t, store, 10)
	store.AwaitReadAhead()
	pgtest.Exec(t, h.pool, `CREATE TABLE before AS SELECT s1, q1, hi FROM outbox_shards`)
	const events = 250 // more than a page
	ids := h.Emit(t, events)
	deliverAll(t, store, events)
	store.AwaitReadAhead()
	// As after the crash.
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards AS c SET s1 = b.s1, q1 = b.q1, hi = b.hi, s2 = NULL, q2 = NULL, pos = 0 FROM before AS b`)
	unread := make(map[string]bool, events)
	for _, id := range ids {
		unread[id.String()] = true
	}
	h.Emit(t, 1) // by which an idle relay finds out
	for range 100 {
		if len(unread) == 0 {
			return
		}
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
		if err != nil {
			if !strings.Contains(err.Error(), "behind the connection pooler") {
				t.Fatal(err)
			}
			continue
		}
		outcomes := make([]outbox.Outcome, len(batch.Messages()))
		for i, m := range batch.Messages() {
			outcomes[i].Kind = outbox.Delivered
			delete(unread, m.ID.String())
		}
		if _, err := batch.Settle(t.Context(), outcomes); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%d of %d events were passed over", len(unread), events)
}
