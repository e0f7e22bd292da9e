// Package handlers is a publisher that calls Go functions, one or more for each type of
// event: an outbox without a broker.
//
// An event is delivered when all its handlers have returned nil. Delivery is at least once:
// a handler may see an event again, and has to tell by its id.
package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/bykey"
)

// Defaults of Options.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultConcurrency = 16
	DefaultRemember    = 10_000
)

// Options say how handlers are called. The zero value is fine.
type Options struct {
	// Timeout bounds one call of a handler: its context ends, and the attempt has failed.
	// Default 30 s.
	Timeout time.Duration
	// Concurrency is how many events are handled at once. Default 16.
	Concurrency int
	// RetryUnknown makes an event that no handler is registered for fail and be tried again,
	// as while a new version is rolled out. By default it is dead at once.
	RetryUnknown bool
	// Remember is of how many unfinished events it is kept which handlers are done. Default
	// 10,000.
	Remember int
	// Logger gets the stacks of panics. Default slog.Default().
	Logger *slog.Logger
}

// Func handles an event. An error is tried again, unless it is marked otherwise: with
// outbox.Terminal the handler is not called again, with outbox.RetryAfter not before, and with
// outbox.Unavailable all handlers wait until an event gets through.
type Func func(ctx context.Context, message outbox.Message) error

// Set is a publisher that hands events to handlers. It is safe for concurrent use.
type Set struct {
	options Options
	lanes   *bykey.Lanes
	memory  *memory

	mu        sync.RWMutex
	byType    map[string][]*handler
	otherwise []*handler
}

// handler is a registered function.
type handler struct {
	name string
	call Func
	// overdue counts its calls that go on after their timeout; the memory's lock guards it.
	overdue int
}

// New makes a set without handlers.
func New(options Options) (*Set, error) {
	if options.Timeout < 0 || options.Concurrency < 0 || options.Remember < 0 {
		return nil, errors.New("handlers: an option is negative")
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.Concurrency == 0 {
		options.Concurrency = DefaultConcurrency
	}
	if options.Remember == 0 {
		options.Remember = DefaultRemember
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return &Set{
		options: options, lanes: bykey.New(options.Concurrency, options.Timeout),
		memory: newMemory(options.Remember, options.Concurrency), byType: make(map[string][]*handler),
	}, nil
}

// Register adds a handler for a type of event. The name tells it from the others of that
// type, in errors and in what is remembered.
func (s *Set) Register(eventType, name string, call Func) error {
	if eventType == "" {
		return fmt.Errorf("handlers: handler %q has no event type; Otherwise takes what has no handler", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := add(s.byType[eventType], name, call)
	if err != nil {
		return fmt.Errorf("handlers: event type %q: %w", eventType, err)
	}
	s.byType[eventType] = list
	return nil
}

// Otherwise adds a handler for the events whose type no other handler is registered for.
func (s *Set) Otherwise(name string, call Func) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := add(s.otherwise, name, call)
	if err != nil {
		return fmt.Errorf("handlers: otherwise: %w", err)
	}
	s.otherwise = list
	return nil
}

// add makes a new list, since the old one may be in use.
func add(list []*handler, name string, call Func) ([]*handler, error) {
	switch {
	case name == "":
		return nil, errors.New("a handler has no name")
	case call == nil:
		return nil, fmt.Errorf("handler %q is nil", name)
	case slices.ContainsFunc(list, func(h *handler) bool { return h.name == name }):
		return nil, fmt.Errorf("there is a handler %q already", name)
	}
	return append(slices.Clone(list), &handler{name: name, call: call}), nil
}

// Publish hands each message to all its handlers and answers nil when they are done. Messages
// of one key are handled one after the other, and none after one that failed.
func (s *Set) Publish(ctx context.Context, messages []outbox.Message) []error {
	return s.lanes.Publish(ctx, messages, s.handle)
}

// KeepsOrder is true: see Publish.
func (s *Set) KeepsOrder() bool { return true }

// handle calls the handlers of one message beside each other.
func (s *Set) handle(ctx context.Context, message *outbox.Message) error {
	list := s.find(message.Type)
	if len(list) == 0 {
		err := fmt.Errorf("no handler is registered for event type %q", message.Type)
		if s.options.RetryUnknown {
			return err
		}
		return &outbox.TerminalError{Reason: outbox.ReasonUnknownType, Err: err}
	}
	errs := make([]error, len(list))
	var running sync.WaitGroup
	for i, h := range list {
		running.Go(func() { errs[i] = s.run(ctx, h, message) })
	}
	running.Wait()
	failures := make([]failure, 0, len(list))
	for i, err := range errs {
		if err != nil {
			failures = append(failures, failure{list[i].name, err})
		}
	}
	if len(failures) == 0 {
		s.memory.forget(message.ID)
		return nil
	}
	err := sum(failures)
	if last := message.MaxAttempts > 0 && message.Attempt >= message.MaxAttempts; last || outbox.Classify(err) == outbox.ClassTerminal {
		s.memory.revive(message.ID)
	}
	return err
}

func (s *Set) find(eventType string) []*handler {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if list := s.byType[eventType]; len(list) > 0 {
		return list
	}
	return s.otherwise
}
