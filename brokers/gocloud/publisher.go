// Package gocloud publishes events to whatever gocloud.dev/pubsub has a driver for. Linked
// in are Amazon SNS and SQS, Azure Service Bus, and the driver in memory; a program that
// imports another driver can name that one's URLs too.
package gocloud

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/wire"
)

// Config says where to publish to, and how.
type Config struct {
	// URL names the topic or queue, as the driver wants it. Where it has {topic} in it, that
	// is replaced by the topic of each message; without it all messages go to one place.
	URL string
	// Format is how the event's fields are written beside its payload.
	Format wire.Format
}

// Publisher publishes through a driver. It is safe for concurrent use. It is no
// outbox.Pinger: no driver can tell whether it would take a message except by being given
// one, which is what the relay does then.
type Publisher struct {
	config Config
	topics *topics

	life   sync.RWMutex // held for reading by the calls under way
	closed bool
}

var errClosed = errors.New("the publisher is closed")

// New makes a publisher. It opens the topic, which does not need the service to be there.
func New(config Config) (*Publisher, error) {
	p := &Publisher{config: config, topics: newTopics()}
	url, err := config.topicURL(&outbox.Message{Event: outbox.Event{Topic: "any"}})
	if err != nil {
		return nil, err
	}
	if err := checkURL(url); err != nil {
		return nil, err
	}
	used, err := p.topics.acquire(url)
	if err != nil {
		return nil, err
	}
	p.topics.release(used)
	return p, nil
}

// Publish publishes a batch, one message of a key at a time and the keys side by side, and
// waits until the service has taken them.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.closed {
		errs := make([]error, len(messages))
		for i := range errs {
			errs[i] = outbox.Unavailable(errClosed)
		}
		return errs
	}
	return outbox.PublishByKey(ctx, messages, p.round)
}

// round publishes messages of different keys.
func (p *Publisher) round(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	var running sync.WaitGroup
	for i := range messages {
		running.Go(func() { errs[i] = p.one(ctx, &messages[i]) })
	}
	running.Wait()
	return errs
}

func (p *Publisher) one(ctx context.Context, message *outbox.Message) error {
	url, err := p.config.topicURL(message)
	if err != nil {
		return err
	}
	topic, err := p.topics.acquire(url)
	if err != nil {
		return err
	}
	defer p.topics.release(topic)
	err = topic.publish(ctx, message, attributes(p.config.Format, message))
	if err != nil && ctx.Err() != nil {
		// The driver goes on with a message that nobody waits for any more, and would send it
		// after others of its key. That ends with the topic.
		p.topics.drop(topic)
	}
	if err != nil {
		return classify(fmt.Errorf("publish to %s: %w", topic.name, err))
	}
	return nil
}

// KeepsOrder is true: of a key one message is under way at a time.
func (p *Publisher) KeepsOrder() bool { return true }

// Close waits for what is being published and closes the topics.
func (p *Publisher) Close() error {
	p.life.Lock()
	defer p.life.Unlock()
	p.closed = true
	return p.topics.close()
}
