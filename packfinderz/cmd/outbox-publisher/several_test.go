package main

import (
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/await"
)

// Two publishers share the table, and each is stopped and started again while there is work. Row locks keep them
// apart, and a stop finishes what it has begun: every event arrives, none of them twice.
func TestSeveralPublishersAndRestarts(t *testing.T) {
	t.Parallel()
	one := newBed(t)
	one.env["PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE"] = "5"
	other := *one
	other.listen = "127.0.0.1:0"
	other.start()
	var ids []uuid.UUID
	for range 6 {
		before := len(one.messages())
		ids = append(ids, one.emitMany(60)...)
		stop := one.start()
		await.Until(t, "some events to arrive", func() bool { return len(one.messages()) > before })
		stop()
	}
	one.await()
	messages := one.messages()
	for _, id := range ids {
		if len(messages[id]) != 1 {
			t.Errorf("event %s arrived %d times", id, len(messages[id]))
		}
	}
	if n := one.number(`SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL AND attempt_count = 0`); n != len(ids) {
		t.Errorf("%d of %d rows are published at the first attempt", n, len(ids))
	}
}

// A row that somebody has locked is passed over, not waited for.
func TestLockedRowsArePassedOver(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.emitMany(3)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM outbox_events WHERE id = $1 FOR UPDATE`, ids[0]); err != nil {
		t.Fatal(err)
	}
	b.start()
	await.Until(t, "the other two to arrive", func() bool { return len(b.messages()) == 2 })
	if len(b.messages()[ids[0]]) != 0 {
		t.Error("a locked row was published")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await()
	if len(b.messages()[ids[0]]) != 1 {
		t.Error("the row was not published after its lock was gone")
	}
}
