// Package handlers is a publisher that calls Go functions, one or more for each type of
// event: an outbox without a broker.
//
// An event is delivered when all its handlers have returned nil. Delivery is at least once: a handler
// may see an event again, and recognizes it by its id.
package handlers

import (
	"context"
	"fmt"
	"sync"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/lanes"
)

// Publisher hands events to handlers. It is safe for concurrent use.
type Publisher struct {
	config Config
	lanes  *lanes.Lanes
	memory *memory

	mu        sync.RWMutex
	byType    map[string][]*handler
	otherwise []*handler
}

// New returns a publisher without handlers.
func New(config Config) (*Publisher, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Publisher{
		config: config, lanes: lanes.New(config.Concurrency, config.Timeout),
		memory: newMemory(config.Remember, config.Concurrency), byType: make(map[string][]*handler),
	}, nil
}

// Publish hands each message to all its handlers and returns nil for it when they are done. Messages of one key are
// handled in sequence, and none after a failed one.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p.lanes.Publish(ctx, messages, p.handle)
}

// KeepsOrder returns true: see Publish.
func (p *Publisher) KeepsOrder() bool { return true }

// handle calls the handlers of one message concurrently.
func (p *Publisher) handle(ctx context.Context, message *outbox.Message) error {
	list := p.find(message.Type)
	if len(list) == 0 {
		err := fmt.Errorf("no handler is registered for event type %q", message.Type)
		if p.config.RetryUnknown {
			return err
		}
		return &outbox.TerminalError{Reason: outbox.ReasonUnknownType, Err: err}
	}
	errs := make([]error, len(list))
	var running sync.WaitGroup
	for i, h := range list {
		running.Go(func() { errs[i] = p.run(ctx, h, message) })
	}
	running.Wait()
	failures := make([]failure, 0, len(list))
	for i, err := range errs {
		if err != nil {
			failures = append(failures, failure{list[i].name, err})
		}
	}
	if len(failures) == 0 {
		p.memory.forget(message.ID)
		return nil
	}
	err := sum(failures)
	if last := message.MaxAttempts > 0 && message.Attempt >= message.MaxAttempts; last || outbox.Classify(err) == outbox.ClassTerminal {
		p.memory.revive(message.ID)
	}
	return err
}
