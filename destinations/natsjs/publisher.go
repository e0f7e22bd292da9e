// Package natsjs publishes events to NATS JetStream. Package natsjs/consumer consumes them.
//
// A message counts as published once the stream has acknowledged it. The event's id is its Nats-Msg-Id, so that a
// message sent again within the stream's duplicate window is stored once; that helps, but guarantees nothing.
package natsjs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/calls"
)

// Publisher publishes to the streams of a NATS server. It is safe for concurrent use.
type Publisher struct {
	config  Config
	options nats.Options
	calls   calls.Calls

	mu      sync.Mutex
	current *attempt // the connection, or the attempt to make one
}

// New returns a publisher. It connects at its first use, and again whenever the connection is lost.
func New(config Config) (*Publisher, error) {
	config = config.withDefaults()
	options, err := config.ClientOptions()
	if err != nil {
		return nil, fmt.Errorf("natsjs: %w", err)
	}
	return &Publisher{config: config, options: options}, nil
}

// KeepsOrder returns true: at most one message of a key is under way, and none after a failed one.
func (p *Publisher) KeepsOrder() bool { return true }

// Publish publishes each message to the subject of its topic, and waits for the streams' acknowledgements.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p.calls.Publish(len(messages), func() []error { return outbox.PublishByKey(ctx, messages, p.publish) })
}

// publish sends messages whose keys differ.
func (p *Publisher) publish(ctx context.Context, messages []outbox.Message) []error {
	if len(messages) == 0 {
		return nil
	}
	l, err := p.link(ctx)
	if err != nil && ctx.Err() != nil {
		err = outbox.ErrNotAttempted // who hangs when we connect is given up before the time ends
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(messages))
	}
	errs := make([]error, len(messages))
	requests := make([]*nats.Msg, 0, len(messages))
	places := make([]int, 0, len(messages))
	for i := range messages {
		r, err := p.config.encode(&messages[i])
		if err != nil {
			errs[i] = err
			continue
		}
		requests, places = append(requests, r), append(places, i)
	}
	answers := l.exchange(ctx, requests)
	p.resolveUnknown(ctx, l, requests, answers)
	heard := make(map[string]bool)
	for i, a := range answers {
		heard[requests[i].Subject] = heard[requests[i].Subject] || a.err == nil
	}
	for i, a := range answers {
		subject := requests[i].Subject
		err := a.failure()
		if isOver(err) && heard[subject] {
			err = behindError{err}
		}
		errs[places[i]] = classify(err, subject)
	}
	return errs
}

// Close waits for running calls, which have their own deadlines, and closes the connection.
func (p *Publisher) Close() error {
	p.calls.Close()
	// Looked at only now: a call that was under way may have made it.
	p.mu.Lock()
	current := p.current
	p.mu.Unlock()
	if current == nil {
		return nil
	}
	<-current.done
	if current.link != nil {
		current.link.conn.Close()
	}
	return nil
}
