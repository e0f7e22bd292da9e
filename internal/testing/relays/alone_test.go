package relays_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestOneEventStopsNobody has events that get nowhere, before any other is there. The destination is
// closed then, for all that is known; but those that come later are tried, too, and get through.
func TestOneEventStopsNobody(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"unclear":     func() error { return outbox.Unclear(errors.New("404")) },
		"broken":      func() error { return io.EOF },
		"unavailable": func() error { return outbox.Unavailable(errors.New("away")) },
		"panic":       func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachStore(t, func(b *bed) {
				emit := func(n int) []uuid.UUID {
					events := make([]outbox.Event, n)
					for i := range events {
						if events[i] = b.event(); b.name == "doorito" {
							events[i].AggregateID = uuid.NewString() // which is its key
						}
					}
					return b.emitEvents(events...)
				}
				bad := emit(12)
				config := b.config(6, pgstore.Config{MaxAttempts: 1000})
				config.Publisher = handOver(func(ctx context.Context, messages []outbox.Message) []error {
					errs := make([]error, len(messages))
					for i := range messages {
						if slices.Contains(bad, messages[i].ID) {
							errs[i] = fail()
						} else {
							errs[i] = b.broker.Publish(ctx, messages[i:i+1])[0]
						}
					}
					return errs
				})
				relay := b.start(config)
				b.logs.Await(b.T, "the route is closed")
				var good []uuid.UUID
				for range 30 {
					good = append(good, emit(1)...)
				}
				b.waitReceived(len(good))
				outboxtest.Stop(b, relay)
				for _, id := range good {
					if b.broker.Count(id) == 0 {
						b.Errorf("%s is lost", id)
					}
				}
			})
		})
	}
}

// TestReturnIsNoEvidence has a destination that answers nobody for a while, and comes back in the middle
// of a batch: what it did not take before is not at fault for that.
func TestReturnIsNoEvidence(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(40)
		calls := 0
		config := b.config(6, pgstore.Config{MaxAttempts: 1}) // one counted attempt would be death
		config.Concurrency = 1
		config.Publisher = handOver(func(ctx context.Context, messages []outbox.Message) []error {
			errs := make([]error, len(messages))
			for i := range messages {
				if calls++; calls <= 20 {
					errs[i] = &outbox.UnclearError{Err: errors.New("404"), Overtaken: true}
					continue
				}
				errs[i] = b.broker.Publish(ctx, messages[i:i+1])[0]
			}
			return errs
		})
		b.drain(config)
		b.wantOnce(ids)
	})
}

// TestPublisherEndsItsGoroutine has a publisher that calls runtime.Goexit, as a test's helper does that
// fails: the relay goes on.
func TestPublisherEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	ids := b.emit(3)
	var once sync.Once
	config := b.config(4, pgstore.Config{})
	config.Publisher = handOver(func(ctx context.Context, messages []outbox.Message) []error {
		once.Do(runtime.Goexit)
		return b.broker.Publish(ctx, messages)
	})
	b.drain(config)
	b.wantOnce(ids)
}
