package outagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// watch is what is known of a relay and its publisher, from the relay's hooks and from a look at every call.
type watch struct {
	mu      sync.Mutex
	changed chan struct{} // closed when anything below changes

	calls     int               // of Publish, so far
	doubts    map[uuid.UUID]int // how often it is not known whether a message was taken
	delivered map[uuid.UUID]bool
	counted   []string // attempts that were counted, and deaths, with their errors
	closed    []outbox.RouteStatus
	// looks are pings and trials that failed since a route was closed.
	looks int
	// firstAfter is when the destination first took a message since mark.
	mark, firstAfter time.Time
}

func newWatch() *watch {
	return &watch{changed: make(chan struct{}), doubts: make(map[uuid.UUID]int), delivered: make(map[uuid.UUID]bool)}
}

// note changes what is known and wakes those who wait for it.
func (w *watch) note(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

// await returns when something is known to hold. It fails the test as soon as an attempt is counted.
func (w *watch) await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	wait := patience
	if isLong() {
		wait = longPatience
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		w.mu.Lock()
		ok, changed, counted := holds(), w.changed, w.counted
		w.mu.Unlock()
		if len(counted) > 0 {
			t.Fatalf("%d attempts were counted until %s, the first: %s", len(counted), what, strings.Join(counted[:min(5, len(counted))], "\n"))
		}
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			w.mu.Lock()
			defer w.mu.Unlock()
			t.Fatalf("waited in vain for %s; %d calls, %d delivered, %d looks failed, closed: %v",
				what, w.calls, len(w.delivered), w.looks, w.closed)
		}
	}
}

// OnRoute notes the routes that are closed.
func (w *watch) OnRoute(status outbox.RouteStatus) {
	w.note(func() {
		if !status.Open {
			w.closed = append(w.closed, status)
		}
	})
}

// OnSettle notes what was delivered and what was counted.
func (w *watch) OnSettle(report outbox.BatchReport) {
	w.note(func() {
		for i, outcome := range report.Outcomes {
			m := &report.Messages[i]
			switch outcome.Kind {
			case outbox.Delivered:
				w.delivered[m.ID] = true
			case outbox.Failed, outbox.Died:
				w.counted = append(w.counted, fmt.Sprintf("%s, attempt %d, %s %s: %s", m.ID, m.Attempt, outcome.Kind, outcome.Reason, outcome.Error))
			}
		}
	})
}

// publisher is the destination's, watched.
type publisher struct {
	outbox.Publisher
	watch *watch
}

// watched wraps a publisher. Whether it can be pinged has to stay as it is.
func (w *watch) watched(p outbox.Publisher) outbox.Publisher {
	if pinger, ok := p.(outbox.Pinger); ok {
		return &pingable{publisher{p, w}, pinger}
	}
	return &publisher{p, w}
}

// Publish passes messages on.
func (p *publisher) Publish(ctx context.Context, messages []outbox.Message) (errs []error) {
	closed := false
	p.watch.note(func() { p.watch.calls++; closed = len(p.watch.closed) > 0 })
	defer func() { // after a panic, too
		p.watch.note(func() { p.watch.answered(messages, errs, closed) })
	}()
	return p.Publisher.Publish(ctx, messages)
}

// answered notes what a publisher answered; nothing at all after a panic. Closed is whether a route was closed before it
// was called. The caller holds the lock.
func (w *watch) answered(messages []outbox.Message, errs []error, closed bool) {
	taken := false
	for i := range messages {
		switch {
		case errs == nil, errs[i] != nil && !errors.Is(errs[i], outbox.ErrNotAttempted):
			w.doubts[messages[i].ID]++
		case errs[i] == nil:
			taken = true
		}
	}
	switch {
	case !taken && closed:
		w.looks++
	case taken && !w.mark.IsZero() && w.firstAfter.IsZero():
		w.firstAfter = time.Now()
	}
}

// PingTopic passes the question on. Without anybody to ask the answer is yes, as it is for the relay.
func (p *publisher) PingTopic(ctx context.Context, topic string) error {
	pinger, ok := p.Publisher.(outbox.TopicPinger)
	if !ok {
		return nil
	}
	return p.watch.pinged(ctx, func(ctx context.Context) error { return pinger.PingTopic(ctx, topic) })
}

// KeepsOrder passes the question on.
func (p *publisher) KeepsOrder() bool {
	sequencer, ok := p.Publisher.(outbox.Sequencer)
	return ok && sequencer.KeepsOrder()
}

// pingable is a publisher that can be pinged.
type pingable struct {
	publisher
	pinger outbox.Pinger
}

// Ping passes the question on.
func (p *pingable) Ping(ctx context.Context) error { return p.watch.pinged(ctx, p.pinger.Ping) }

func (w *watch) pinged(ctx context.Context, ping func(context.Context) error) error {
	closed := false
	w.note(func() { closed = len(w.closed) > 0 })
	err := ping(ctx)
	if err != nil && closed {
		w.note(func() { w.looks++ })
	}
	return err
}
