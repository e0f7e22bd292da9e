package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/logtest"
)

// TestSlowIsNoEvidence has a destination that answers only some messages of a batch in time, but all of them if it
// gets them one at a time. No event is blamed, however often it was late.
func TestSlowIsNoEvidence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const atOnce, rounds = 8, 20
		store := newMemStore(many(atOnce + 2)...)
		events := atOnce + 2
		startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Concurrency: 1, Publisher: asked{
			func(_ context.Context, messages []outbox.Message) []error {
				errs := make([]error, len(messages))
				for i := atOnce; i < len(messages); i++ {
					errs[i] = context.DeadlineExceeded
				}
				if len(messages) > atOnce && events < rounds*atOnce { // more come, and come first
					store.add(many(atOnce)...)
					events += atOnce
				}
				return errs
			},
			func() error { return nil },
			func(string) error { return nil },
		}})
		<-time.After(time.Minute)
		all := strings.Join(store.settled(), " ")
		if n := strings.Count(all, "delivered"); n != events || strings.Contains(all, "failed") {
			t.Errorf("%d of %d are delivered; the outcomes are %s", n, events, all)
		}
	})
}

// TestKnownEventWaits has one event that the destination does not know. After it was found at fault, and with
// nothing else to send, it is no longer counted and not sent over and over.
func TestKnownEventWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const patience, quiet = 1000, 10 * time.Minute
		bad := many(1)[0]
		store := newMemStore(bad)
		var tried atomic.Int64
		startOrdered(t, outbox.RelayConfig{Store: store, Poll: calm, Concurrency: 1, Retry: outbox.RetryPolicy{Base: time.Second, Max: time.Second}, Publisher: &scripted{
			answer: func(message outbox.Message) error {
				if message.ID != bad.ID {
					return nil
				}
				if tried.Add(1) > patience {
					return nil // otherwise the test would not end
				}
				return outbox.Unclear(errors.New("404"))
			},
		}})
		for !slices.Contains(store.settled(), "failed") {
			store.add(many(1)...)
			<-time.After(5 * time.Second)
		}
		<-time.After(5 * time.Second)
		counted, before := strings.Count(strings.Join(store.settled(), " "), "failed"), tried.Load()
		<-time.After(quiet)
		if n := strings.Count(strings.Join(store.settled(), " "), "failed"); n != counted {
			t.Errorf("%d attempts were counted while nothing else got through", n-counted)
		}
		if n := tried.Load() - before; n == 0 || n > int64(quiet/time.Second) {
			t.Errorf("it was tried %d times in %s", n, quiet)
		}
	})
}

// TestAwayForOneEvent has a destination that is unavailable for one event only. That event is not counted, and
// after a few times no longer stops the others.
func TestAwayForOneEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const seconds = 600
		bad := many(1)[0]
		store := newMemStore(bad)
		var closed, delivered atomic.Int64
		startOrdered(t, outbox.RelayConfig{
			Store: store, Poll: calm, Concurrency: 1,
			Hooks: []any{routeHook(func(status outbox.RouteStatus) {
				if !status.Open {
					closed.Add(1)
				}
			})},
			Publisher: &scripted{answer: func(message outbox.Message) error {
				if message.ID == bad.ID {
					return outbox.Unavailable(errors.New("not for this tenant"))
				}
				delivered.Add(1)
				return nil
			}},
		})
		for range seconds {
			store.add(many(1)...)
			<-time.After(time.Second)
		}
		<-time.After(time.Minute)
		if n := delivered.Load(); n != seconds {
			t.Errorf("%d of %d others are delivered", n, seconds)
		}
		if n := closed.Load(); n > 5 {
			t.Errorf("the destination was closed %d times", n)
		}
		if all := strings.Join(store.settled(), " "); strings.Contains(all, "failed") || strings.Contains(all, "dead") {
			t.Error("an attempt was counted")
		}
	})
}

// TestMostReceiversAway has a destination that accepts one message in ten, whichever it is. No event is blamed, and
// all are delivered in the end.
func TestMostReceiversAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events = 200
		store := newMemStore(many(events)...)
		var requests, delivered atomic.Int64
		log := &logtest.Log{}
		startOrdered(t, outbox.RelayConfig{
			Store: store, Poll: calm, Concurrency: 1, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Publisher: &scripted{answer: func(outbox.Message) error {
				if requests.Add(1)%10 != 0 {
					return outbox.Unclear(errors.New("nobody here knows you"))
				}
				delivered.Add(1)
				return nil
			}},
		})
		for range 60 {
			<-time.After(time.Minute)
		}
		if n := delivered.Load(); n != events {
			t.Errorf("%d of %d are delivered", n, events)
		}
		if all := strings.Join(store.settled(), " "); strings.Contains(all, "failed") || strings.Contains(all, "dead") {
			t.Error("an attempt was counted")
		}
		if n := log.Count("none is blamed"); n == 0 || n > 60 {
			t.Errorf("it was said %d times in an hour", n)
		}
	})
}

// routeHook observes routes.
type routeHook func(outbox.RouteStatus)

func (h routeHook) OnRoute(status outbox.RouteStatus) { h(status) }
