package outboxtest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// ErrDown is what a Broker that is down answers.
var ErrDown = errors.New("the broker is down")

// Broker is a publisher that keeps messages in memory and fails as it is told. The zero
// value takes everything.
type Broker struct {
	mu       sync.Mutex
	received []outbox.Message
	fail     func(outbox.Message) error
	down     bool
	pings    int
	changed  chan struct{}
}

// Publish keeps the messages.
func (b *Broker) Publish(_ context.Context, messages []outbox.Message) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(messages))
	for i, message := range messages {
		switch {
		case b.down:
			errs[i] = outbox.Unavailable(ErrDown)
		case b.fail != nil:
			errs[i] = b.fail(message)
		}
		if errs[i] == nil {
			b.received = append(b.received, message)
		}
	}
	b.notify()
	return errs
}

// Ping answers unless the broker is down.
func (b *Broker) Ping(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pings++
	b.notify()
	if b.down {
		return ErrDown
	}
	return nil
}

// FailWith decides the fate of every message from now on; nil takes everything again. The
// function must be quick, and is not called by two publishes at once.
func (b *Broker) FailWith(fail func(outbox.Message) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = fail
}

// SetDown makes the broker unavailable, or available again.
func (b *Broker) SetDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// Received are the messages taken so far, in order.
func (b *Broker) Received() []outbox.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

// Pings is how often the broker was asked whether it is there.
func (b *Broker) Pings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pings
}

// Count is how often an event was received.
func (b *Broker) Count(id uuid.UUID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for i := range b.received {
		if b.received[i].ID == id {
			n++
		}
	}
	return n
}

// Wait returns when condition holds, looking again after everything the broker is asked,
// or with ctx's error.
func (b *Broker) Wait(ctx context.Context, condition func(received []outbox.Message) bool) error {
	for {
		b.mu.Lock()
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed, received := b.changed, b.received
		b.mu.Unlock()
		if condition(received) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notify wakes those that wait. The caller holds the lock.
func (b *Broker) notify() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
