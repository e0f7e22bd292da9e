package handlers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestTimeout has a handler that waits for the end of its context.
func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, handlers.Config{Timeout: 5 * time.Second})
		var calls atomic.Int64
		register(t, set, "waits", func(ctx context.Context, _ outbox.Message) error {
			calls.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		message := publishertest.Messages(1)[0]
		for range 2 {
			start := time.Now()
			wantClass(t, "a timeout", attempt(t, set, message), outbox.ClassRetryable, "handler waits: ")
			if took := time.Since(start); took != 5*time.Second {
				t.Errorf("it took %s", took)
			}
			synctest.Wait()
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls, want one for each attempt", n)
		}
	})
}

// TestTimeoutSaysWhy has handlers that end with their context and know why they took so long, or have
// just made it.
func TestTimeoutSaysWhy(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"downstream is away": outbox.Unavailable(errors.New("no answer")), "it made it": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := newSet(t, handlers.Config{Timeout: 5 * time.Second})
				register(t, set, "heeds", func(ctx context.Context, _ outbox.Message) error {
					<-ctx.Done()
					time.Sleep(time.Millisecond) // the clock is not real
					return answer
				})
				err := attempt(t, set, publishertest.Messages(1)[0])
				if answer == nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantClass(t, "a timeout", err, outbox.ClassUnavailable, "it did not end within 5s: no answer")
			})
		})
	}
}

// TestIgnoresTimeout has a handler that goes on: the attempt fails in time, it is not called a
// second time meanwhile, and what it comes to counts.
func TestIgnoresTimeout(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]error{"succeeds late": nil, "fails late": errors.New("late")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := newSet(t, handlers.Config{Timeout: 5 * time.Second})
				var calls atomic.Int64
				release := make(chan error)
				register(t, set, "deaf", func(context.Context, outbox.Message) error {
					calls.Add(1)
					return <-release
				})
				message := publishertest.Messages(1)[0]
				start := time.Now()
				wantClass(t, "the first attempt", attempt(t, set, message), outbox.ClassRetryable, "handler deaf: it did not end within 5s")
				second := attempt(t, set, message)
				wantClass(t, "the second", second, outbox.ClassRetryable, "handler deaf: it still runs from an earlier attempt")
				if !errors.Is(second, outbox.ErrNotAttempted) {
					t.Errorf("a handler that was not called is a failed attempt: %v", second)
				}
				if took := time.Since(start); took < 5*time.Second || took > 6*time.Second || calls.Load() != 1 {
					t.Errorf("%d calls in %s", calls.Load(), took)
				}
				release <- late
				synctest.Wait()
				if late == nil {
					if err := attempt(t, set, message); err != nil || calls.Load() != 1 {
						t.Errorf("it was done already, but %v and %d calls", err, calls.Load())
					}
					return
				}
				go func() { release <- nil }()
				if err := attempt(t, set, message); err != nil || calls.Load() != 2 {
					t.Errorf("%v and %d calls", err, calls.Load())
				}
			})
		})
	}
}

// TestOverdue bounds the calls that go on: others are not begun until some of them end, and
// other handlers are not held up.
func TestOverdue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, handlers.Config{Timeout: time.Second, Concurrency: 2})
		var calls atomic.Int64
		release := make(chan struct{})
		register(t, set, "deaf", func(context.Context, outbox.Message) error {
			calls.Add(1)
			<-release
			return nil
		})
		other := &counter{}
		if err := set.Otherwise("other", other.handle); err != nil {
			t.Fatal(err)
		}
		messages := publishertest.Messages(6)
		messages[5].Type = "another"
		for i := range messages[:5] {
			words := "it did not end"
			if i >= 2 {
				words = "too many of its calls have not ended"
			}
			err := attempt(t, set, messages[i])
			wantClass(t, "overdue", err, outbox.ClassRetryable, words)
			if errors.Is(err, outbox.ErrNotAttempted) != (i >= 2) {
				t.Errorf("event %d: %v", i, err)
			}
		}
		if err := attempt(t, set, messages[5]); err != nil || calls.Load() != 2 {
			t.Errorf("another handler: %v; %d calls of the deaf one", err, calls.Load())
		}
		close(release)
		synctest.Wait()
		for i := range messages[:5] {
			if err := attempt(t, set, messages[i]); err != nil {
				t.Error(err)
			}
		}
		if n := calls.Load(); n != 5 {
			t.Errorf("%d calls, want one for each event", n)
		}
	})
}

// TestBatchDeadline has less time than the handlers may take.
func TestBatchDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, handlers.Config{Concurrency: 1})
		register(t, set, "waits", func(ctx context.Context, _ outbox.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		errs := set.Publish(ctx, publishertest.Messages(3))
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
		wantClass(t, "the first", errs[0], outbox.ClassRetryable, "handler waits")
		for _, err := range errs[1:] {
			if !errors.Is(err, outbox.ErrNotAttempted) {
				t.Errorf("a message without its turn: %v", err)
			}
		}
		synctest.Wait()
	})
}
