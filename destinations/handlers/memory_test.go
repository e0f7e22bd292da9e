package handlers_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestForgets bounds the memory: the oldest event starts over, and the others do not.
func TestForgets(t *testing.T) {
	t.Parallel()
	set := newSet(t, handlers.Config{Remember: 2})
	seen := make(map[string]int)
	var mu sync.Mutex
	register(t, set, "done", func(_ context.Context, m outbox.Message) error {
		mu.Lock()
		defer mu.Unlock()
		seen[m.AggregateID]++
		return nil
	})
	register(t, set, "fails", (&counter{fail: errors.New("no")}).handle)
	messages := publishertest.Messages(3)
	for _, i := range []int{0, 1, 2, 2, 1, 0} {
		if attempt(t, set, messages[i]) == nil {
			t.Fatal("it was delivered")
		}
	}
	if seen["0"] != 2 || seen["1"] != 1 || seen["2"] != 1 {
		t.Errorf("the handler that is done was called %v", seen)
	}
}

// TestRemembersRunning fills the memory while an event is being handled: it is not forgotten, so the
// handler that is done with it is not called again.
func TestRemembersRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, handlers.Config{Remember: 1})
		messages := publishertest.Messages(3)
		done, release := make(map[string]int), make(chan struct{})
		register(t, set, "done", func(_ context.Context, m outbox.Message) error {
			done[m.AggregateID]++
			return nil
		})
		register(t, set, "fails", func(_ context.Context, m outbox.Message) error {
			if m.ID == messages[0].ID {
				<-release
			}
			return errors.New("no")
		})
		answer := make(chan error, 1)
		go func() { answer <- attempt(t, set, messages[0]) }()
		synctest.Wait() // one of its handlers is done, the other runs
		for _, message := range messages[1:] {
			wantClass(t, "beside it", attempt(t, set, message), outbox.ClassRetryable, "handler fails: no")
		}
		close(release)
		wantClass(t, "the first attempt", <-answer, outbox.ClassRetryable, "handler fails: no")
		wantClass(t, "the second", attempt(t, set, messages[0]), outbox.ClassRetryable, "handler fails: no")
		if n := done[messages[0].AggregateID]; n != 1 {
			t.Errorf("the handler that is done was called %d times, want once: its event was forgotten while another handler ran", n)
		}
	})
}
