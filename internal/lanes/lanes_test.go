package lanes_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/lanes"
)

// batch makes a message for each key; Attempt is its place.
func batch(keys ...string) []outbox.Message {
	messages := make([]outbox.Message, len(keys))
	for i, key := range keys {
		messages[i] = outbox.Message{Event: outbox.Event{Key: key}, Attempt: i}
	}
	return messages
}

// TestOrder holds the order of each key, and that no key waits for another.
func TestOrder(t *testing.T) {
	t.Parallel()
	lanes := lanes.New(4, time.Second)
	var mu sync.Mutex
	seen := make(map[string][]int)
	held := make(chan struct{})
	errs := lanes.Publish(t.Context(), batch("slow", "a", "b", "a", "slow", "b", "a"), func(_ context.Context, m *outbox.Message) error {
		if m.Attempt == 0 {
			<-held // until the last message of another key is through
		}
		mu.Lock()
		defer mu.Unlock()
		seen[m.Key] = append(seen[m.Key], m.Attempt)
		if len(seen["a"]) == 3 && m.Key == "a" {
			close(held)
		}
		return nil
	})
	for key, want := range map[string][]int{"slow": {0, 4}, "a": {1, 3, 6}, "b": {2, 5}} {
		if !slices.Equal(seen[key], want) {
			t.Errorf("key %s: %v, want %v", key, seen[key], want)
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) || len(errs) != 7 {
		t.Errorf("the answers are %v", errs)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		lanes int
		fail  error
		want  string // s sent, f failed, w not attempted
	}{
		"a failure stops its key":           {1, refused, "sfssww"},
		"a terminal failure stops its key":  {1, outbox.Rejected(refused), "sfssww"},
		"an absent broker stops everything": {1, outbox.Unavailable(refused), "sfwwww"},
	} {
		errs := lanes.New(test.lanes, time.Second).Publish(t.Context(), batch("a", "b", "", "", "b", "b"), func(_ context.Context, m *outbox.Message) error {
			if m.Attempt == 1 {
				return test.fail
			}
			return nil
		})
		got := ""
		for _, err := range errs {
			switch {
			case err == nil:
				got += "s"
			case errors.Is(err, outbox.ErrNotAttempted):
				got += "w"
			default:
				got += "f"
			}
		}
		// A key has one lane, and its turn comes where its first message stands.
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestBound has several batches at once share the lanes.
func TestBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lanes := lanes.New(3, time.Second)
		var now, most atomic.Int64
		var batches sync.WaitGroup
		release := make(chan struct{})
		for range 4 {
			batches.Go(func() {
				lanes.Publish(t.Context(), batch(make([]string, 20)...), func(context.Context, *outbox.Message) error {
					most.Store(max(most.Load(), now.Add(1)))
					<-release
					now.Add(-1)
					return nil
				})
			})
		}
		synctest.Wait() // all that may be under way are
		close(release)
		batches.Wait()
		if most.Load() != 3 {
			t.Errorf("%d messages were under way at once, want 3", most.Load())
		}
	})
}

// TestDeadline has calls of 4 s with a timeout of 10 s: what is begun is given its time, and
// the rest is not begun.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for budget, want := range map[time.Duration]int{30 * time.Second: 6, 15 * time.Second: 2, 3 * time.Second: 0} {
		t.Run(budget.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				sent, waiting := 0, 0
				for _, err := range lanes.New(1, 10*time.Second).Publish(ctx, batch(make([]string, 20)...), func(ctx context.Context, _ *outbox.Message) error {
					select {
					case <-time.After(4 * time.Second):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}) {
					switch {
					case err == nil:
						sent++
					case errors.Is(err, outbox.ErrNotAttempted):
						waiting++
					}
				}
				failed := 20 - sent - waiting
				if sent != want || failed != 0 && want > 0 {
					t.Errorf("%d sent, %d failed, want %d and none", sent, failed, want)
				}
			})
		})
	}
}

// TestOvertaken has an unclear answer, and messages that get through. Only one that was sent after it
// says that the destination is there.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys      []string
		overtaken bool
	}{
		"the first of one lane": {[]string{"bad", "a"}, true},
		"the last of one lane":  {[]string{"a", "bad"}, false},
	} {
		lanes := lanes.New(1, time.Minute)
		errs := lanes.Publish(t.Context(), batch(test.keys...), func(_ context.Context, m *outbox.Message) error {
			if m.Key == "bad" {
				return outbox.Unclear(errors.New("404"))
			}
			return nil
		})
		var unclear *outbox.UnclearError
		if !errors.As(errs[slices.Index(test.keys, "bad")], &unclear) || unclear.Overtaken != test.overtaken {
			t.Errorf("%s: %v, overtaken: %t, want %t", name, errs, unclear.Overtaken, test.overtaken)
		}
	}
	// Sent before, and answered after it.
	lanes, answered := lanes.New(2, time.Minute), make(chan struct{})
	var sent sync.WaitGroup
	sent.Add(2)
	errs := lanes.Publish(t.Context(), batch("bad", "a"), func(_ context.Context, m *outbox.Message) error {
		sent.Done()
		sent.Wait()
		if m.Key == "bad" {
			defer close(answered)
			return context.DeadlineExceeded
		}
		<-answered
		return nil
	})
	var unclear *outbox.UnclearError
	if errs[1] != nil || errors.As(errs[0], &unclear) {
		t.Errorf("beside each other: %v", errs)
	}
}
