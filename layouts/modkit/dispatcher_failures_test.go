package modkit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestDispatcherFailures follows a message through all its attempts until it is dead: each waits longer than the
// one before, by the formula, and keeps its error.
func TestDispatcherFailures(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	const base, attempts = time.Hour, 4
	deaths := &deathCounter{died: make(chan outbox.Reason, 1)}
	module := modkit.Config{MaxAttempts: attempts, Retry: outbox.RetryPolicy{Base: base, Max: 3 * base}}
	b.dispatch(module, modkit.DispatcherConfig{Hooks: []any{deaths}}, func(_ context.Context, m modkit.ClaimedMessage) error {
		return fmt.Errorf("downstream refused attempt %d", m.Attempts)
	})
	for i, ceiling := range []time.Duration{base, 2 * base, 3 * base} {
		attempt := i + 1
		await.Until(t, "the attempt to fail", func() bool { r := b.row(id); return r.status == "pending" && r.attempts == attempt })
		r := b.want(id, "pending", attempt)
		if r.dueIn < ceiling/2-time.Minute || r.dueIn > ceiling {
			t.Errorf("after attempt %d it is due in %s, want between %s and %s", attempt, r.dueIn, ceiling/2, ceiling)
		}
		if !strings.Contains(r.lastError, fmt.Sprint("downstream refused attempt ", attempt)) {
			t.Errorf("after attempt %d the error is %q", attempt, r.lastError)
		}
		b.makeDue()
	}
	if reason := <-deaths.died; reason != outbox.ReasonMaxAttempts {
		t.Errorf("it died for %s", reason)
	}
	if r := b.want(id, "dead", attempts); !strings.Contains(r.lastError, "refused attempt 4") {
		t.Errorf("the last error is %q", r.lastError)
	}
	line := b.logs.Line("event dead")
	for _, words := range []string{
		"level=WARN", "event_id=" + id.String(), "namespace=mini-chat", "topic=usage", "attempt=4", "refused attempt 4", "reason=max_attempts",
	} {
		if !strings.Contains(line, words) {
			t.Errorf("the log lacks %q: %s", words, line)
		}
	}
}

// deathCounter is a hook, like a module's metrics.
type deathCounter struct{ died chan outbox.Reason }

func (d *deathCounter) OnSettle(report outbox.BatchReport) {
	for _, outcome := range report.Outcomes {
		if outcome.Kind == outbox.Died {
			d.died <- outcome.Reason
		}
	}
}

// TestDispatcherAnswers makes the handler return every kind of answer.
func TestDispatcherAnswers(t *testing.T) {
	t.Parallel()
	cause := errors.New("the answer")
	for name, c := range map[string]struct {
		answer   func() error
		status   string
		attempts int
	}{
		"an ordinary error is tried again": {func() error { return cause }, "pending", 1},
		"a timeout is tried again":         {func() error { return context.DeadlineExceeded }, "pending", 1},
		"a panic is tried again":           {func() error { panic("the answer") }, "pending", 1},
		"a terminal error is the end":      {func() error { return outbox.Terminal(cause) }, "dead", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			id := b.enqueue(1)[0]
			b.dispatch(modkit.Config{Retry: outbox.RetryPolicy{Base: time.Hour, Max: time.Hour}}, modkit.DispatcherConfig{},
				func(context.Context, modkit.ClaimedMessage) error { return c.answer() })
			await.Until(t, "the attempt to be settled", func() bool { r := b.row(id); return r.lastError != "" && !r.held })
			b.want(id, c.status, c.attempts)
		})
	}
}

// TestDispatcherOutage makes downstream unavailable: nothing is counted, however often.
func TestDispatcherOutage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	calls := 0 // one message, one call at a time
	b.dispatch(modkit.Config{MaxAttempts: 1}, modkit.DispatcherConfig{}, func(context.Context, modkit.ClaimedMessage) error {
		if calls++; calls <= 3 {
			return outbox.Unavailable(errors.New("downstream is away"))
		}
		return nil
	})
	b.awaitDelivered(id)
	if r := b.want(id, "delivered", 1); r.lastError != "" {
		t.Errorf("the last error is %q", r.lastError)
	}
}

// TestDispatcherLosesItsLease lets another worker take the row before the handler returns: that is logged, and the
// row is left alone, whatever the answer.
func TestDispatcherLosesItsLease(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"acknowledged": nil, "failed": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			id := b.enqueue(1)[0]
			thief := uuid.New()
			b.dispatch(modkit.Config{}, modkit.DispatcherConfig{}, func(_ context.Context, m modkit.ClaimedMessage) error {
				if m.Attempts > 1 {
					return errors.New("it was given the message again")
				}
				_, err := b.pool.Exec(t.Context(), `UPDATE modkit_outbox_events SET locked_by = $1, attempts = 2 WHERE id = $2`, thief, id)
				return errors.Join(err, answer)
			})
			await.Until(t, "the loss to be logged", func() bool {
				return strings.Contains(b.logs.Line("lease lost"), id.String())
			})
			if r := b.want(id, "processing", 2); r.owner != thief.String() || r.lastError != "" {
				t.Errorf("the row of another worker has become %+v", r)
			}
		})
	}
}

// TestDispatcherReclaims takes over what a dead worker held.
func TestDispatcherReclaims(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.enqueue(3)
	gone := b.module(modkit.Config{})
	b.claim(gone, 3)
	b.claim(b.module(modkit.Config{}), 0) // they are held
	b.expire()
	attempts := make(chan int, len(ids))
	b.dispatch(modkit.Config{}, modkit.DispatcherConfig{}, func(_ context.Context, m modkit.ClaimedMessage) error {
		attempts <- m.Attempts
		return nil
	})
	for _, id := range ids {
		if attempt := <-attempts; attempt != 2 {
			t.Errorf("it is attempt %d, want 2", attempt)
		}
		b.awaitDelivered(id)
	}
}
