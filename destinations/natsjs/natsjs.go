// Package natsjs publishes to NATS JetStream. Package consumer, below it, consumes.
//
// A message counts as published once the server has answered with the stream's own
// acknowledgement. The event's id goes along as Nats-Msg-Id, so that a message that is sent
// again within the stream's duplicate window is stored once; that is an aid, not a guarantee.
package natsjs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
)

// errClosed is the answer of a publisher that was closed.
var errClosed = errors.New("the publisher is closed")

// Publisher publishes to the streams of a NATS server. It is safe for concurrent use.
type Publisher struct {
	config  Config
	options nats.Options

	mu      sync.Mutex
	current *attempt // the connection, or the attempt to make one
	closed  bool
	running sync.WaitGroup
}

// New checks the configuration. The server need not be there: the connection is made at the
// first use, and made again whenever it is lost.
func New(config Config) (*Publisher, error) {
	options, err := config.ClientOptions()
	if err != nil {
		return nil, fmt.Errorf("natsjs: %w", err)
	}
	if config.Window == 0 {
		config.Window = DefaultWindow
	}
	return &Publisher{config: config, options: options}, nil
}

// KeepsOrder is true: of each key at most one message is under way, and none after one that
// failed.
func (p *Publisher) KeepsOrder() bool { return true }

// Publish publishes the messages, each to the subject that is its topic, and waits for the
// streams' acknowledgements.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	if !p.enter() {
		return all(len(messages), outbox.Unavailable(errClosed))
	}
	defer p.running.Done()
	return outbox.PublishByKey(ctx, messages, p.publish)
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
		return all(len(messages), err)
	}
	errs := make([]error, len(messages))
	requests := make([]request, 0, len(messages))
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
		heard[requests[i].msg.Subject] = heard[requests[i].msg.Subject] || a.err == nil
	}
	for i, a := range answers {
		subject := requests[i].msg.Subject
		err := a.failure()
		if isOver(err) && heard[subject] {
			err = behindError{err}
		}
		errs[places[i]] = classify(err, subject)
	}
	return errs
}

// Close waits for the calls that are under way, which have their own deadlines, and ends the
// connection.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
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

// enter counts a call in, unless the publisher is closed.
func (p *Publisher) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	return true
}

func all(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
