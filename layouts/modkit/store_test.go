package modkit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// TestClaimPassesOverLocked has somebody hold a row in an open transaction: a claim does not wait
// for it, and takes the others.
func TestClaimPassesOverLocked(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.enqueue(3)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM modkit_outbox_events WHERE id = $1 FOR UPDATE`, ids[0]); err != nil {
		t.Fatal(err)
	}
	// A claim that waits ends with an error.
	impatient, err := modkit.NewStore(pgtest.Connect(t, b.url+"&lock_timeout=5s"), modkit.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	messages := b.claim(impatient, 2)
	if messages[0].ID != ids[1] || messages[1].ID != ids[2] {
		t.Errorf("claimed %s and %s", messages[0].ID, messages[1].ID)
	}
	b.want(ids[0], "pending", 0)
}

// TestLoweredMaximum has a row reach a maximum that was higher when it was last tried: the next
// claim meets it, and moves it to dead instead of trying it.
func TestLoweredMaximum(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	before := b.store(modkit.StoreConfig{MaxAttempts: 5, Retry: outbox.RetryPolicy{Base: time.Nanosecond, Max: time.Nanosecond}})
	if err := before.Nack(t.Context(), b.claim(before, 1)[0], errors.New("the first answer")); err != nil {
		t.Fatal(err)
	}
	b.want(id, "pending", 1)
	b.claim(b.store(modkit.StoreConfig{MaxAttempts: 1}), 0)
	if r := b.want(id, "dead", 1); !strings.Contains(r.lastError, "the first answer") {
		t.Errorf("the last error is %q", r.lastError)
	}
	// A higher maximum does not bring it back.
	b.makeDue()
	b.claim(before, 0)
	b.want(id, "dead", 1)
}

// TestUpdatedAt has no trigger do what the statements of every transition do.
func TestUpdatedAt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var triggers int
	err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_trigger WHERE tgrelid = 'modkit_outbox_events'::regclass`).Scan(&triggers)
	if err != nil || triggers != 0 {
		t.Errorf("the table has %d triggers: %v", triggers, err)
	}
	store := b.store(modkit.StoreConfig{Retry: outbox.RetryPolicy{Base: time.Nanosecond, Max: time.Nanosecond}})
	for name, settle := range map[string]func(modkit.ClaimedMessage) error{
		"ack":  func(m modkit.ClaimedMessage) error { return store.Ack(t.Context(), m) },
		"nack": func(m modkit.ClaimedMessage) error { return store.Nack(t.Context(), m, errors.New("no")) },
		"terminal": func(m modkit.ClaimedMessage) error {
			return store.Nack(t.Context(), m, outbox.Terminal(errors.New("no")))
		},
		"release": func(m modkit.ClaimedMessage) error { return store.Release(t.Context(), m) },
	} {
		id := b.enqueue(1)[0]
		enqueued := b.row(id).updated
		var message modkit.ClaimedMessage
		for _, m := range b.claimAll(store) {
			if m.ID == id {
				message = m
			}
		}
		claimed := b.row(id).updated
		if !claimed.After(enqueued) {
			t.Errorf("a claim leaves updated_at at %s", enqueued)
		}
		if err := settle(message); err != nil {
			t.Fatal(err)
		}
		if settled := b.row(id).updated; !settled.After(claimed) {
			t.Errorf("%s leaves updated_at at %s", name, claimed)
		}
	}
}
