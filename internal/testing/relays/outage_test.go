package relays_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestOutage takes the broker away under load. Nothing is counted, nothing dies, and
// everything arrives once it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		config := b.config(6, pgstore.Config{MaxAttempts: 1}) // one counted attempt would be death
		config.BatchSize = 20
		relay := b.start(config)
		before := b.emit(50)
		b.waitReceived(len(before))
		b.broker.SetDown(true)
		during := b.emit(200)
		ctx, cancel := context.WithTimeout(b.Context(), patience)
		defer cancel()
		if err := b.broker.Wait(ctx, func([]outbox.Message) bool { return b.broker.Pings() >= 3 && !relay.Available() }); err != nil {
			b.Fatal("the relay did not notice that the broker is away")
		}
		b.broker.SetDown(false)
		b.waitReceived(len(before) + len(during))
		outboxtest.Stop(b, relay)
		b.wantOnce(append(before, during...))
		if n := b.logs.Count("the route is closed"); n != 1 {
			b.Errorf("the outage was logged %d times, want once", n)
		}
	})
}

// TestConnectionPoison is an event at which the connection breaks every time: in the end
// it counts, and the others arrive, whether the broker can be pinged or not.
func TestConnectionPoison(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(outbox.Publisher) outbox.Publisher{
		"with a ping":    func(p outbox.Publisher) outbox.Publisher { return p },
		"without a ping": func(p outbox.Publisher) outbox.Publisher { return mute{p} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "modkit")
			ids := b.emit(5)
			var breaks atomic.Int64
			b.broker.FailWith(func(m outbox.Message) error {
				switch {
				case m.ID != ids[0]:
					return nil
				case breaks.Add(1) == 10: // so that a relay that never suspects it is soon found out
					return outbox.Rejected(errors.New("broken ten times"))
				}
				return outbox.Broken(errors.New("connection reset"))
			})
			config := b.config(4, pgstore.Config{MaxAttempts: 1})
			config.Publisher = hide(b.broker)
			config.Concurrency, config.BatchSize = 1, 2
			relay := b.start(config)
			b.waitSQL(`SELECT status = 'dead' FROM modkit_outbox_events WHERE id = $1`, ids[0])
			b.waitReceived(4)
			outboxtest.Stop(t, relay)
			b.wantOnce(ids[1:])
			if n := breaks.Load(); n != 3 {
				b.Errorf("the connection broke %d times at the event before it counted, want 3", n)
			}
			b.wantSQL(`SELECT attempts = 1 AND last_error LIKE '%3 times running%' FROM modkit_outbox_events WHERE id = $1`, ids[0])
		})
	}
}

// mute is a publisher that cannot be pinged.
type mute struct{ outbox.Publisher }

// counting notes how many messages each call has, until the broker takes one.
type counting struct {
	outbox.Publisher
	calls *[]int
	taken *bool
}

func (c counting) Publish(ctx context.Context, messages []outbox.Message) []error {
	if !*c.taken {
		*c.calls = append(*c.calls, len(messages))
	}
	errs := c.Publisher.Publish(ctx, messages)
	*c.taken = *c.taken || slices.Contains(errs, nil)
	return errs
}

// TestOutageWithoutPing has a broker be away that cannot be asked: it is tried with two messages at
// a time, which are not counted, however often, and everything goes on when it is back.
func TestOutageWithoutPing(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	config := b.config(4, pgstore.Config{MaxAttempts: 1}) // one counted attempt would be death
	var calls []int
	config.Publisher, config.Concurrency = counting{b.broker, &calls, new(bool)}, 1
	tried := make(chan struct{}, 100)
	b.broker.FailWith(func(outbox.Message) error {
		tried <- struct{}{}
		return outbox.Unavailable(errors.New("connection refused"))
	})
	ids := b.emit(5)
	relay := b.start(config)
	for range len(ids) + 2*3 { // all of them, and then more trials than make an event suspect
		<-tried
	}
	b.broker.FailWith(nil)
	b.waitReceived(len(ids))
	outboxtest.Stop(t, relay)
	b.wantOnce(ids)
	for i, n := range calls {
		if i > 0 && n > 2 {
			b.Errorf("the broker was tried with %v messages, want no more than 2 after the first call", calls)
			break
		}
	}
	if len(calls) < 5 {
		b.Errorf("the broker was tried with %v messages, want one call, three trials and the one that succeeded", calls)
	}
}

// TestOutageStopsWhatIsQueued has the broker go while a batch is claimed ahead of the one that is
// being published: it is given back, and the broker is not asked to take it.
func TestOutageStopsWhatIsQueued(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	ids := b.emit(10)
	config := b.config(4, pgstore.Config{MaxAttempts: 1}) // one counted attempt would be death
	publisher := slow{b.broker, make(chan struct{}, 100), make(chan struct{})}
	config.Publisher = struct {
		outbox.Publisher
		outbox.Pinger
	}{publisher, b.broker}
	config.Concurrency, config.BatchSize = 1, 5
	b.start(config)
	<-publisher.entered
	b.broker.SetDown(true)
	b.waitSQL(`SELECT count(*) = 10 FROM modkit_outbox_events WHERE status = 'processing'`)
	close(publisher.letGo)
	b.waitSQL(`SELECT count(*) = 10 FROM modkit_outbox_events WHERE status = 'pending' AND attempts = 0 AND locked_by IS NULL`)
	if n := len(publisher.entered); n > 0 {
		b.Errorf("%d more batches were handed to a broker that is away", n)
	}
	b.broker.SetDown(false)
	b.waitReceived(len(ids))
	b.wantOnce(ids)
}
