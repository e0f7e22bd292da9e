package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/packfinderz/outbox"
)

// Func handles an event. After an error it is called again, unless the error is outbox.Terminal. After
// outbox.RetryAfter that is not before the requested time; after outbox.Unavailable all handlers wait until an
// event gets through.
type Func func(ctx context.Context, message outbox.Message) error

// handler is a registered function.
type handler struct {
	name string
	call Func
	// overdue counts its calls that run beyond their timeout; the memory's lock guards it.
	overdue int
}

// Register adds a handler for an event type. Its name must be unique for that type; errors show it.
func (p *Publisher) Register(eventType, name string, call Func) error {
	if eventType == "" {
		return fmt.Errorf("handlers: handler %q has no event type; Otherwise takes what has no handler", name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list, err := add(p.byType[eventType], name, call)
	if err != nil {
		return fmt.Errorf("handlers: event type %q: %w", eventType, err)
	}
	p.byType[eventType] = list
	return nil
}

// Otherwise adds a handler for the event types that have no other handler.
func (p *Publisher) Otherwise(name string, call Func) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, err := add(p.otherwise, name, call)
	if err != nil {
		return fmt.Errorf("handlers: otherwise: %w", err)
	}
	p.otherwise = list
	return nil
}

// add returns a new list, because the old one may be in use.
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

// Handles reports whether there is a handler for an event type. With HandlesAll it makes the publisher a
// consume.Typed.
func (p *Publisher) Handles(eventType string) bool { return len(p.find(eventType)) > 0 }

// HandlesAll reports whether Otherwise has registered a handler.
func (p *Publisher) HandlesAll() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.otherwise) > 0
}

func (p *Publisher) find(eventType string) []*handler {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if list := p.byType[eventType]; len(list) > 0 {
		return list
	}
	return p.otherwise
}
