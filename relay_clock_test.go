package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
)

// growing are pauses that double up to ten seconds.
var growing = []time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
	10 * time.Second, 10 * time.Second,
}

// looking are the pauses between two pings of a closed route: they double up to two seconds.
var looking = []time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second,
}

// calm is the poll interval of these relays: on the bubble's clock, every poll costs more than the time between.
const calm = time.Second

// moments returns a channel that holds more than a test reads.
func moments() chan time.Time { return make(chan time.Time, 1000) }

// TestPauseAfterFailures checks the pause of a failed event without a due time of its own, and of the whole loop
// after a failed settle: it doubles, so that attempts are not used up within a second.
func TestPauseAfterFailures(t *testing.T) {
	t.Parallel()
	t.Run("of events without a due time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			bad, tried := many(1)[0], moments()
			store := newMemStore(bad)
			store.traits.Backoff = false
			others := 0
			relay := startOrdered(t, outbox.RelayConfig{
				Store: store, Poll: calm, Retry: outbox.RetryPolicy{Base: growing[0], Max: growing[len(growing)-1]},
				Publisher: &scripted{answer: func(m outbox.Message) error {
					if m.ID != bad.ID {
						others++
						return nil
					}
					tried <- time.Now()
					return errors.New("not now")
				}},
			})
			pauses(t, tried, growing...)
			// The others do not wait for it.
			store.add(many(5)...)
			<-time.After(calm)
			outboxtest.Stop(t, relay)
			if others != 5 {
				t.Errorf("%d of 5 other events were published while one waits", others)
			}
		})
	})
	t.Run("of the settle", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store, tried := newMemStore(many(1)...), moments()
			store.onSettle = func(context.Context, []outbox.Outcome) error { return outbox.ErrLeaseLost }
			startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: &scripted{answer: func(outbox.Message) error {
				tried <- time.Now()
				return nil
			}}})
			pauses(t, tried, growing...)
		})
	})
	t.Run("short again after a good one", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store, tried := newMemStore(many(1)...), moments()
			var failures atomic.Int64
			failures.Store(4)
			store.onSettle = func(context.Context, []outbox.Outcome) error {
				if failures.Add(-1) >= 0 {
					return outbox.ErrLeaseLost
				}
				return nil
			}
			startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: &scripted{answer: func(outbox.Message) error {
				tried <- time.Now()
				return nil
			}}})
			pauses(t, tried, growing[:4]...)
			<-time.After(time.Minute) // it is settled
			failures.Store(1)
			store.add(many(1)...)
			pauses(t, tried, growing[0])
		})
	})
}

// pinged is a publisher that records when it is pinged, and answers as told.
type pinged struct {
	*scripted
	pings chan time.Time
	err   func() error
}

func (p pinged) Ping(context.Context) error {
	p.pings <- time.Now()
	return p.err()
}

// TestPauseInOutage checks the pause between two pings, or two trials, of an unavailable broker.
func TestPauseInOutage(t *testing.T) {
	t.Parallel()
	away := outbox.Unavailable(errors.New("away"))
	t.Run("between pings", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := newMemStore(many(3)...)
			answer := error(nil) // at the start
			publisher := pinged{&scripted{answer: func(outbox.Message) error { return away }}, moments(), func() error {
				defer func() { answer = away }()
				return answer
			}}
			startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: publisher})
			<-publisher.pings
			pauses(t, publisher.pings, looking[1:]...)
			if want := []string{"released released released"}; !slices.Equal(store.settled(), want) {
				t.Errorf("the outcomes are %q, want %q", store.settled(), want)
			}
		})
	})
	t.Run("between trials", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store, tried := newMemStore(many(1)...), moments()
			startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: &scripted{answer: func(outbox.Message) error {
				tried <- time.Now()
				return away
			}}})
			pauses(t, tried, looking...)
		})
	})
}

// TestPauseWhenNothingIsAttempted checks the pause after a batch of which the publisher tried nothing, as a
// publisher with its own circuit breaker does.
func TestPauseWhenNothingIsAttempted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, tried := newMemStore(many(1)...), moments()
		startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: &scripted{answer: func(outbox.Message) error {
			tried <- time.Now()
			return outbox.ErrNotAttempted
		}}})
		pauses(t, tried, growing[:4]...)
	})
}

// TestSettleAgain lets the database fail during a settle: the batch is settled in the end and not published again.
func TestSettleAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, publisher, fails := newMemStore(many(2)...), &scripted{}, 7
		store.onSettle = func(context.Context, []outbox.Outcome) error {
			if fails--; fails >= 0 {
				return errors.New("no connection")
			}
			return nil
		}
		relay := startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: publisher})
		<-time.After(10 * time.Minute)
		outboxtest.Stop(t, relay)
		if want := []string{"delivered delivered"}; !slices.Equal(store.settled(), want) {
			t.Errorf("the outcomes are %q, want %q", store.settled(), want)
		}
		if len(publisher.calls) != 1 {
			t.Errorf("it was published %d times, want once", len(publisher.calls))
		}
	})
}

// TestUnblocked has a store with more to claim after each settle: the relay claims it at once, however long it
// would have slept.
func TestUnblocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, given := newMemStore(many(2)...), moments()
		store.oneOut, store.unblocks = true, true
		startOrdered(t, outbox.RelayConfig{Store: store, Poll: time.Hour, Publisher: &scripted{answer: func(outbox.Message) error {
			<-time.After(20 * time.Second) // the relay falls asleep meanwhile
			given <- time.Now()
			return nil
		}}})
		if pause := -(<-given).Sub(<-given); pause != 20*time.Second {
			t.Errorf("the second event was taken %s after the first was settled, want at once", pause-20*time.Second)
		}
	})
}

// TestStopWhileClaiming stops a relay during a claim. The claim may continue for five seconds, since the database
// may have made it, and its events are released.
func TestStopWhileClaiming(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"a claim that ends": false, "a claim that hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, publisher, began := newMemStore(many(2)...), &scripted{}, time.Now()
				claiming, answer := make(chan struct{}), make(chan struct{})
				store.onClaim = func(ctx context.Context) error {
					close(claiming)
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-answer:
						return nil
					}
				}
				relay := startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: publisher})
				<-claiming
				if !late {
					time.AfterFunc(4*time.Second, func() { close(answer) })
				}
				outboxtest.Stop(t, relay)
				want, took := []string{"released released"}, 4*time.Second
				if late {
					want, took = nil, 5*time.Second
				}
				if !slices.Equal(store.settled(), want) || len(publisher.calls) > 0 {
					t.Errorf("the outcomes are %q after %d calls, want %q and no call", store.settled(), len(publisher.calls), want)
				}
				if got := time.Since(began); got != took {
					t.Errorf("the stop took %s, want %s", got, took)
				}
			})
		})
	}
}

// TestStopWhilePublishing stops a relay during a slow publish: the publish goes on, and what it acknowledges is
// settled.
func TestStopWhilePublishing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, publishing := newMemStore(many(2)...), make(chan struct{})
		relay := startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: handOver(func(ctx context.Context, messages []outbox.Message) []error {
			close(publishing)
			select {
			case <-time.After(15 * time.Second):
			case <-ctx.Done():
			}
			return slices.Repeat([]error{ctx.Err()}, len(messages))
		})})
		<-publishing
		outboxtest.Stop(t, relay)
		if want := []string{"delivered delivered"}; !slices.Equal(store.settled(), want) {
			t.Errorf("the outcomes are %q, want %q", store.settled(), want)
		}
	})
}

// TestTimeoutBetweenRounds has a key whose messages go out one by one. A round that has too little time left does
// not start: its messages are released, uncounted and unsent.
func TestTimeoutBetweenRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(keyed("a", "a", "a", "a")...)
		store.traits.InOrder = true
		publisher := &scripted{answer: func(outbox.Message) error {
			<-time.After(20 * time.Second)
			return nil
		}}
		relay := startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: publisher, PublishTimeout: 30 * time.Second})
		<-time.After(50 * time.Second)
		want := []string{"delivered released released released", "delivered released released"}
		if !slices.Equal(store.settled(), want) {
			t.Errorf("the outcomes are %q, want %q", store.settled(), want)
		}
		outboxtest.Stop(t, relay)
	})
}

// TestDrainWaitsForRetries drains a store with one event that is due again in half an hour or more, and one that
// takes a minute to publish.
func TestDrainWaitsForRetries(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{0, 2} {
		t.Run(fmt.Sprintf("%d failures", failures), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newMemStore(many(1)...)
				relay := newOrderedRelay(t, outbox.RelayConfig{
					Store: store, Poll: calm, Retry: outbox.RetryPolicy{Base: time.Hour, Max: time.Hour},
					Publisher: &scripted{answer: func(m outbox.Message) error {
						<-time.After(time.Minute)
						if m.Attempt <= failures {
							return errors.New("not now")
						}
						return nil
					}},
				})
				if err := relay.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := append(slices.Repeat([]string{"failed"}, failures), "delivered")
				if !slices.Equal(store.settled(), want) {
					t.Errorf("the drain ended with the outcomes %q, want %q", store.settled(), want)
				}
			})
		})
	}
}

// TestDrainWaitsForOthers drains while another relay holds an event: it may still release it.
func TestDrainWaitsForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		store.out = 1
		time.AfterFunc(time.Hour, func() {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.out, store.waiting = 0, []shelved{{many(1)[0], time.Now()}} // at once: in between nothing would be left
		})
		relay := newOrderedRelay(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: &scripted{}})
		if err := relay.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"delivered"}; !slices.Equal(store.settled(), want) {
			t.Errorf("the drain ended with the outcomes %q, want %q", store.settled(), want)
		}
	})
}

// TestRenewals has a publish that takes longer than the lease. The lease is renewed until the publish ends,
// although the database fails now and then. The settle waits for a renewal under way: otherwise it would carry the
// wrong proof.
func TestRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(many(1)...) // renewed every hour
		var renewals, renewing atomic.Int64
		store.onRenew = func() error {
			renewing.Add(1)
			defer renewing.Add(-1)
			<-time.After(time.Minute)
			if renewals.Add(1) == 1 {
				return errors.New("the database is away")
			}
			return nil
		}
		store.onSettle = func(context.Context, []outbox.Outcome) error {
			if renewing.Load() > 0 {
				t.Error("the batch was settled while its lease was being renewed")
			}
			return nil
		}
		relay := newOrderedRelay(t, outbox.RelayConfig{
			Store: store, Poll: calm, PublishTimeout: 10 * time.Hour, Publisher: &scripted{answer: func(outbox.Message) error {
				<-time.After(4*time.Hour + 30*time.Second) // in the middle of the fourth renewal
				return nil
			}},
		})
		if err := relay.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := renewals.Load(); n != 4 {
			t.Errorf("the lease was renewed %d times in four hours, want 4", n)
		}
	})
}
