package doorito_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
)

var errHandler = errors.New("the thumbnailer is busy")

func succeed(context.Context, outbox.Message) error { return nil }
func fail(context.Context, outbox.Message) error    { return errHandler }

// ended fails unless a row is terminal: never due again.
func (b *bed) ended(got row) {
	b.Helper()
	if got.NextAttemptAt != nil {
		b.Errorf("a %s event is due at %s, want never", got.Status, got.NextAttemptAt)
	}
	if !got.UpdatedAt.After(got.CreatedAt) {
		b.Errorf("a %s event was updated at %s, created at %s", got.Status, got.UpdatedAt, got.CreatedAt)
	}
}

// TestDelivered checks the row of an event whose handler succeeded.
func TestDelivered(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var handled []outbox.Message
	b.handle("file.stored", func(_ context.Context, message outbox.Message) error {
		handled = append(handled, message)
		return nil
	})
	b.start()
	id := b.emit()
	got := b.await(id, "delivered", 0)
	b.ended(got)
	if got.DeliveredAt == nil || got.DeliveredAt.Before(got.CreatedAt) || got.DeliveredAt.After(got.DatabaseClock) || got.ErrorMessage != "" {
		t.Errorf("delivered at %v with error %q", got.DeliveredAt, got.ErrorMessage)
	}
	outboxtest.Stop(t, b.relay)
	if len(handled) != 1 || handled[0].ID != id || handled[0].AggregateID != "42" || string(handled[0].Payload) != `{"size": 7}` {
		t.Errorf("the handler was called with %+v", handled)
	}
}

// TestFailed checks the row of an event whose handler fails, attempt by attempt: it stays pending, waits twice as
// long each time, and is failed at the maximum in its row.
func TestFailed(t *testing.T) {
	t.Parallel()
	for name, maximum := range map[string]int{"the model's default": 5, "the row's own": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.handle("file.stored", fail)
			id := b.emit(func(event *outbox.Event) { event.MaxAttempts = maximum })
			b.start()
			for attempts := 1; attempts < maximum; attempts++ {
				got := b.await(id, "pending", attempts)
				if got.ErrorMessage != "handler test: the thumbnailer is busy" || got.DeliveredAt != nil || got.MaxAttempts != maximum {
					t.Errorf("after %d attempts: %+v", attempts, got)
				}
				delay := later << (attempts - 1)
				// The update came a moment before the next attempt was computed.
				if wait := got.NextAttemptAt.Sub(got.UpdatedAt); wait < delay/2 || wait > delay+time.Minute {
					t.Errorf("after %d attempts it waits %s, want %s to %s", attempts, wait, delay/2, delay)
				}
				b.makeDue(id)
			}
			got := b.await(id, "failed", maximum)
			b.ended(got)
			if got.DeliveredAt != nil || got.ErrorMessage != "handler test: the thumbnailer is busy" {
				t.Errorf("after the last attempt: %+v", got)
			}
			b.staysFailed(id)
		})
	}
}

// TestLoweredMaximum lowers the maximum in the row: the error gives the number of attempts, and keeps the last
// error.
func TestLoweredMaximum(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.handle("file.stored", fail)
	id := b.emit()
	b.start()
	b.await(id, "pending", 1)
	pgtest.Exec(t, b.pool, `UPDATE outbox_event SET max_attempts = 0 WHERE id = $1`, id)
	b.makeDue(id)
	await.Until(t, "the event to have failed", func() bool { return b.row(id).Status == "failed" })
	got := b.row(id)
	b.ended(got)
	if want := "the attempts are used up: 1 of 0; before that: handler test: the thumbnailer is busy"; got.ErrorMessage != want {
		t.Errorf("the error is %q", got.ErrorMessage)
	}
}

// staysFailed lets the relay deliver another event: the failed one stays untouched.
func (b *bed) staysFailed(id uuid.UUID) {
	b.Helper()
	before := b.row(id)
	b.handle("user.created", succeed)
	pgtest.Exec(b.T, b.pool, `INSERT INTO outbox_event (id, aggregate_type, aggregate_id, event_type, idempotency_key)
		VALUES ($1, 'User', '7', 'user.created', '')`, uuid.Max)
	b.await(uuid.Max, "delivered", 0)
	if after := b.row(id); after.UpdatedAt != before.UpdatedAt || after.Status != "failed" || after.NextAttemptAt != nil {
		b.Errorf("the failed event became %+v", after)
	}
}

// TestDeliveredAfterFailures keeps the count and the last error of an event that got through late.
func TestDeliveredAfterFailures(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.handle("file.stored", func(_ context.Context, message outbox.Message) error {
		if message.Attempt < 3 {
			return errHandler
		}
		return nil
	})
	b.start()
	id := b.emit()
	for attempts := 1; attempts < 3; attempts++ {
		b.await(id, "pending", attempts)
		b.makeDue(id)
	}
	got := b.await(id, "delivered", 2)
	b.ended(got)
	if got.DeliveredAt == nil || got.ErrorMessage == "" {
		t.Errorf("%+v", got)
	}
}

// TestNoHandler emits an event before its handler exists: the handler may be in the next version.
func TestNoHandler(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start()
	id := b.emit()
	got := b.await(id, "pending", 1)
	if got.ErrorMessage != `no handler is registered for event type "file.stored"` || got.NextAttemptAt == nil {
		t.Errorf("%+v", got)
	}
	outboxtest.Stop(t, b.relay)
	b.deploy()
	b.handle("file.stored", succeed)
	b.start()
	b.makeDue(id)
	b.await(id, "delivered", 1)
}

// TestRequestNeverFails makes the delivery after the commit fail in every way. emit fails the test if the request
// notices.
func TestRequestNeverFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler  func(release <-chan struct{}) error
		prepare  func(b *bed)
		attempts int
	}{
		"the handler fails":                 {func(<-chan struct{}) error { return errHandler }, (*bed).start, 1},
		"the handler panics":                {func(<-chan struct{}) error { panic("index out of range") }, (*bed).start, 1},
		"the handler takes its time":        {func(release <-chan struct{}) error { <-release; return errHandler }, (*bed).start, 1},
		"there is no relay":                 {nil, func(*bed) {}, 0},
		"the relay has stopped":             {nil, func(b *bed) { b.start(); outboxtest.Stop(b, b.relay) }, 0},
		"the relay cannot get at its table": {nil, (*bed).breakStore, 0},
		"the relay is no more":              {nil, func(b *bed) { b.nudges(func() { panic("nil pointer dereference") }) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			release := make(chan struct{})
			b.handle("file.stored", func(context.Context, outbox.Message) error { return c.handler(release) })
			c.prepare(b)
			id := b.emit()
			// Only after the request has its answer does the slow handler go on.
			close(release)
			b.await(id, "pending", c.attempts)
		})
	}
}

// breakStore runs the relay on a database that no longer answers.
func (b *bed) breakStore() {
	b.Helper()
	working := b.pool
	b.pool = pgtest.Connect(b.T, b.pool.Config().ConnString())
	working.Close()
	b.start()
}

// TestSafetyNet emits without a nudge: the relay polls.
func TestSafetyNet(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.handle("file.stored", succeed)
	b.start()
	b.nudges(nil)
	b.await(b.emit(), "delivered", 0)
}

// TestRetryByHand retries a failed event: it is pending, with no attempts counted, and due now. Its error stays
// until the next attempt.
func TestRetryByHand(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.handle("file.stored", fail)
	b.start()
	id := b.emit(func(event *outbox.Event) { event.MaxAttempts = 1 })
	failed := b.await(id, "failed", 1)
	outboxtest.Stop(t, b.relay)
	waiting := b.emit(doorito.IdempotencyKey("waiting"))

	retried, err := b.store.Retry(t.Context(), id, waiting, uuid.New())
	if err != nil || len(retried) != 1 || retried[0] != id {
		t.Fatalf("retried %v (%v), want only %s", retried, err, id)
	}
	got := b.row(id)
	if got.Status != "pending" || got.Attempts != 0 || got.NextAttemptAt == nil || got.NextAttemptAt.After(got.DatabaseClock) ||
		got.ErrorMessage != failed.ErrorMessage || !got.UpdatedAt.After(failed.UpdatedAt) {
		t.Fatalf("retried, it is %+v", got)
	}
	b.deploy()
	b.handle("file.stored", succeed)
	b.start()
	b.ended(b.await(id, "delivered", 0))
	if retried, err := b.store.Retry(t.Context(), id); err != nil || len(retried) != 0 {
		t.Errorf("a delivered event was retried: %v (%v)", retried, err)
	}
}
