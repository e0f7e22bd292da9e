package outbox_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
)

// asked is a publisher that can be pinged, and whose topics can.
type asked struct {
	handOver
	ping      func() error
	pingTopic func(topic string) error
}

func (a asked) Ping(context.Context) error { return a.ping() }

func (a asked) PingTopic(_ context.Context, topic string) error { return a.pingTopic(topic) }

// TestPingAfterSilence delivers one message and lets the next time out. A ping tells why: if it fails too, the
// destination or the topic is closed at once, and nothing is counted.
func TestPingAfterSilence(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, want := range map[string]string{"destination": "delivered released", "topic hung": "delivered stopped"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				messages := keyed("a", "b")
				messages[1].Topic, messages[1].MaxAttempts = "hung", 1
				store, hook := newMemStore(messages...), &diary{}
				var hangs atomic.Bool
				var calls atomic.Int64
				ping := func(route string) error {
					if route == name && hangs.Load() {
						return away
					}
					return nil
				}
				relay := startOrdered(t, outbox.RelayConfig{
					Store: store, Poll: calm, Hooks: []any{routesOnly{hook}},
					PublishTimeout: 5 * time.Second, // before an idle destination is pinged anyway
					Publisher: asked{
						func(ctx context.Context, messages []outbox.Message) []error {
							errs := make([]error, len(messages))
							if calls.Add(1) == 1 {
								hangs.Store(true)
							}
							for i := range messages {
								if messages[i].Topic == "hung" && hangs.Load() {
									<-ctx.Done()
									errs[i] = ctx.Err()
								}
							}
							return errs
						},
						func() error { return ping("destination") },
						func(topic string) error { return ping("topic " + topic) },
					},
				})
				<-time.After(time.Minute)
				if !slices.Equal(store.settled(), []string{want}) || calls.Load() != 1 {
					t.Errorf("the outcomes are %q after %d calls, want %q and one call", store.settled(), calls.Load(), want)
				}
				hangs.Store(false)
				<-time.After(time.Minute)
				outboxtest.Stop(t, relay)
				if !slices.Equal(store.settled(), []string{want, "delivered"}) {
					t.Errorf("the outcomes are %q, want %q and delivered", store.settled(), want)
				}
				if len(hook.lines) != 2 || hook.lines[1] != name+" open true: " {
					t.Errorf("the hook was told %q, want that %s was closed, and opened", hook.lines, name)
				}
			})
		})
	}
}

// routesOnly is a diary of routes.
type routesOnly struct{ diary *diary }

func (r routesOnly) OnRoute(status outbox.RouteStatus) { r.diary.OnRoute(status) }

// TestFirstPing has a destination that is unavailable at the start: until it answers, the relay claims nothing and
// is not available.
func TestFirstPing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const before = 3
		var pings atomic.Int64
		store := newMemStore(many(2)...)
		store.onClaim = func(context.Context) error {
			if n := pings.Load(); n <= before {
				t.Errorf("something was claimed after %d pings, of which none succeeded", n)
			}
			return nil
		}
		publisher := pinged{&scripted{}, moments(), func() error {
			if pings.Add(1) <= before {
				return errors.New("away")
			}
			return nil
		}}
		relay := newOrderedRelay(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: publisher})
		if relay.Available() {
			t.Error("the relay is available before anybody has asked the destination")
		}
		if err := relay.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-publisher.pings
		if relay.Available() {
			t.Error("the relay is available although its destination is away")
		}
		<-time.After(time.Minute)
		if !relay.Available() {
			t.Errorf("the relay is not available: %+v", relay.Routes())
		}
		outboxtest.Stop(t, relay)
		if want := []string{"delivered delivered"}; !slices.Equal(store.settled(), want) {
			t.Errorf("the outcomes are %q, want %q", store.settled(), want)
		}
	})
}

// TestRouteRetryAfter has a destination that accepts nothing and says when to come back: it is left alone until
// then, but for a quarter of an hour at most.
func TestRouteRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, want time.Duration }{{time.Minute, time.Minute}, {24 * time.Hour, 15 * time.Minute}} {
		t.Run(c.asked.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tried := moments()
				startOrdered(t, outbox.RelayConfig{Store: newMemStore(many(1)...), Poll: calm, Publisher: &scripted{answer: func(outbox.Message) error {
					tried <- time.Now()
					return outbox.RetryAfter(outbox.Unavailable(errors.New("busy")), c.asked)
				}}})
				if pause := -(<-tried).Sub(<-tried); pause < c.want || pause > c.want+calm {
					t.Errorf("it was tried again after %s, want %s", pause, c.want)
				}
			})
		})
	}
}

// TestDatabaseHangs has a claim, or a settle, that never ends. It is given up after a lease and made again.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claim", "settle"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, letGo := newMemStore(many(1)...), make(chan struct{})
				t.Cleanup(func() { close(letGo) }) // after a relay that waits for ever
				var hung atomic.Bool
				hang := func(ctx context.Context) error {
					if hung.Swap(true) {
						return nil
					}
					select {
					case <-ctx.Done():
					case <-letGo:
					}
					return errors.New("no answer")
				}
				if name == "claim" {
					store.onClaim = hang
				} else {
					store.onSettle = func(ctx context.Context, _ []outbox.Outcome) error { return hang(ctx) }
				}
				relay := newOrderedRelay(t, outbox.RelayConfig{Store: store, Poll: calm, Publisher: &scripted{}})
				if err := relay.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-time.After(4 * time.Hour) // the lease is three
				if want := []string{"delivered"}; !slices.Equal(store.settled(), want) {
					t.Fatalf("the outcomes are %q, want %q", store.settled(), want)
				}
				outboxtest.Stop(t, relay)
			})
		})
	}
}
