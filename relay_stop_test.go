package outbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
)

// TestStopBound stops a relay whose destination or database hangs. The publish is cancelled in time to settle what
// was delivered, and the settle in time for Stop to return an error. The bound is that of Stop's context or the
// relay's Grace.
func TestStopBound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace, bound         time.Duration
		publishing, settling time.Duration // how long each hangs
		settled              []string
		took                 time.Duration
		fails                bool
	}{
		"all goes well":                  {0, time.Minute, 2 * time.Second, time.Second, []string{"delivered released"}, 3 * time.Second, false},
		"the destination hangs":          {0, 3 * time.Second, time.Hour, 0, []string{"delivered released"}, 2 * time.Second, false},
		"the database hangs":             {0, 10 * time.Second, 0, time.Hour, nil, 9 * time.Second, true},
		"both hang":                      {0, 10 * time.Second, time.Hour, time.Hour, nil, 9 * time.Second, true},
		"the grace is over first":        {3 * time.Second, time.Hour, time.Hour, 0, []string{"delivered released"}, 2 * time.Second, false},
		"no bound but the grace":         {10 * time.Second, 0, 0, time.Hour, nil, 9 * time.Second, true},
		"no bound but the default grace": {0, 0, time.Hour, time.Hour, nil, 27 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, publishing := newMemStore(many(2)...), make(chan struct{})
				store.onSettle = func(ctx context.Context, _ []outbox.Outcome) error { return wait(ctx, c.settling) }
				publisher := handOver(func(ctx context.Context, messages []outbox.Message) []error {
					close(publishing)
					if len(messages) != 2 {
						t.Errorf("%d messages", len(messages))
					}
					_ = wait(ctx, c.publishing)
					return []error{nil, context.Canceled}
				})
				relay := newOrderedRelay(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: publisher, Grace: c.grace})
				if err := relay.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-publishing
				ctx, cancel := t.Context(), func() {}
				if c.bound > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.bound)
				}
				defer cancel()
				began := time.Now()
				err := relay.Stop(ctx)
				if took := time.Since(began); took != c.took || (err != nil) != c.fails {
					t.Errorf("the stop took %s and returned %v, want %s, an error: %v", took, err, c.took, c.fails)
				}
				if !slices.Equal(store.settled(), c.settled) {
					t.Errorf("the outcomes are %q, want %q", store.settled(), c.settled)
				}
			})
		})
	}
}

// wait waits, but not past the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestStopDeaf stops a relay whose publisher ignores its context: Stop gives up waiting. A later Stop waits for the
// rest.
func TestStopDeaf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		publishing := make(chan struct{})
		relay := newOrderedRelay(t, outbox.RelayConfig{Store: newMemStore(many(1)...), Poll: calm, Publisher: handOver(func(context.Context, []outbox.Message) []error {
			close(publishing)
			<-time.After(time.Hour)
			return []error{nil}
		})})
		if err := relay.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-publishing
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := relay.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the time is over", err)
		}
		if err := relay.Start(t.Context()); !errors.Is(err, outbox.ErrRunning) {
			t.Errorf("got %v, want that it runs", err)
		}
		if err := relay.Stop(t.Context()); err == nil {
			t.Error("the message was settled though the time was over")
		}
	})
}

// TestStopIsTold has the callers of Run and Drain hear what Stop hears: that something was not settled, or not drained.
func TestStopIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do             func(*outbox.Relay, context.Context) error
		hangs          time.Duration // the database
		stops, returns bool          // with an error
	}{
		"run":                    {(*outbox.Relay).Run, 0, false, false},
		"run that cannot settle": {(*outbox.Relay).Run, time.Hour, true, true},
		"drain":                  {(*outbox.Relay).Drain, 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, publishing := newMemStore(many(1)...), make(chan struct{}, 1)
				store.onSettle = func(ctx context.Context, _ []outbox.Outcome) error { return wait(ctx, c.hangs) }
				relay := newOrderedRelay(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: handOver(func(ctx context.Context, _ []outbox.Message) []error {
					publishing <- struct{}{}
					return []error{wait(ctx, time.Hour)}
				})})
				ended := make(chan error, 1)
				go func() { ended <- c.do(relay, t.Context()) }()
				<-publishing
				if err := relay.Stop(t.Context()); (err != nil) != c.stops {
					t.Errorf("Stop returns %v", err)
				}
				if err := <-ended; (err != nil) != c.returns {
					t.Errorf("it returns %v", err)
				}
			})
		})
	}
}
