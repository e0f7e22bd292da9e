package modkit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// TestClaimPassesOverLocked locks a row in an open transaction: a claim does not wait for it, and takes the others.
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
	impatient, err := modkit.NewModule(pgtest.Connect(t, b.url+"&lock_timeout=5s"), modkit.Config{Namespace: modkit.AllNamespaces})
	if err != nil {
		t.Fatal(err)
	}
	messages := b.claim(impatient, 2)
	if messages[0].ID != ids[1] || messages[1].ID != ids[2] {
		t.Errorf("claimed %s and %s", messages[0].ID, messages[1].ID)
	}
	b.want(ids[0], "pending", 0)
}

// TestLoweredMaximum lowers the maximum to a row's attempts: the next claim moves the row to dead instead of trying
// it.
func TestLoweredMaximum(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	before := b.module(modkit.Config{MaxAttempts: 5, Retry: outbox.RetryPolicy{Base: time.Nanosecond, Max: time.Nanosecond}})
	if err := before.Nack(t.Context(), b.claim(before, 1)[0], errors.New("the first answer")); err != nil {
		t.Fatal(err)
	}
	b.want(id, "pending", 1)
	b.claim(b.module(modkit.Config{MaxAttempts: 1}), 0)
	if r := b.want(id, "dead", 1); !strings.Contains(r.lastError, "the first answer") {
		t.Errorf("the last error is %q", r.lastError)
	}
	// A higher maximum does not bring it back.
	b.makeDue()
	b.claim(before, 0)
	b.want(id, "dead", 1)
}

// TestNack nacks a message: the row waits, or is dead if it was the last attempt or the error is terminal. Until
// then the worker holds it, for its lease.
func TestNack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		maximum int
		cause   error
		status  string
	}{
		"an attempt left":  {2, errors.New("busy"), "pending"},
		"the last attempt": {1, errors.New("busy"), "dead"},
		"terminal":         {2, outbox.Terminal(errors.New("busy")), "dead"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			id, worker := b.enqueue(1)[0], uuid.New()
			module := b.module(modkit.Config{
				MaxAttempts: c.maximum, WorkerID: worker, LeaseDuration: time.Hour, Retry: outbox.RetryPolicy{Base: time.Hour, Max: time.Hour},
			})
			message := b.claim(module, 1)[0]
			if r := b.want(id, "processing", 1); r.owner != worker.String() {
				t.Errorf("it is held by %s, want %s", r.owner, worker)
			}
			var lease float64
			err := b.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM locked_until - updated_at)::float8 FROM modkit_outbox_events`).Scan(&lease)
			if err != nil || lease != time.Hour.Seconds() {
				t.Errorf("the lease is %g s, want an hour: %v", lease, err)
			}
			if err := module.Nack(t.Context(), message, c.cause); err != nil {
				t.Fatal(err)
			}
			r := b.want(id, c.status, 1)
			if !strings.Contains(r.lastError, "busy") {
				t.Errorf("the last error is %q", r.lastError)
			}
			if c.status == "pending" && (r.dueIn < 29*time.Minute || r.dueIn > time.Hour) {
				t.Errorf("it is due in %s, want half an hour to an hour", r.dueIn)
			}
		})
	}
}

// TestUpdatedAt checks that every transition sets updated_at without a trigger.
func TestUpdatedAt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var triggers int
	err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_trigger WHERE tgrelid = 'modkit_outbox_events'::regclass`).Scan(&triggers)
	if err != nil || triggers != 0 {
		t.Errorf("the table has %d triggers: %v", triggers, err)
	}
	module := b.module(modkit.Config{Retry: outbox.RetryPolicy{Base: time.Nanosecond, Max: time.Nanosecond}})
	for name, settle := range map[string]func(modkit.ClaimedMessage) error{
		"ack":  func(m modkit.ClaimedMessage) error { return module.Ack(t.Context(), m) },
		"nack": func(m modkit.ClaimedMessage) error { return module.Nack(t.Context(), m, errors.New("no")) },
		"terminal": func(m modkit.ClaimedMessage) error {
			return module.Nack(t.Context(), m, outbox.Terminal(errors.New("no")))
		},
		"release": func(m modkit.ClaimedMessage) error { return module.Release(t.Context(), m) },
	} {
		id := b.enqueue(1)[0]
		enqueued := b.row(id).updated
		var message modkit.ClaimedMessage
		for _, m := range b.claimAll(module) {
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
