// Package gocloud publishes events to every service that gocloud.dev/pubsub has a driver for. Amazon SNS and SQS,
// Azure Service Bus and the in-memory driver are linked in; a program that imports another driver can use its URLs,
// too.
package gocloud

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/calls"
)

// Publisher publishes through a driver. It is safe for concurrent use.
type Publisher struct {
	config Config
	topics *topics
	// asked is the URL that Ping asks for: the one that was last published to.
	asked atomic.Pointer[string]

	calls calls.Calls
}

// New returns a publisher. It connects at its first use.
func New(config Config) (*Publisher, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	p := &Publisher{config: config, topics: newTopics()}
	url := strings.ReplaceAll(config.URL, placeholder, "any")
	used, err := p.topics.acquire(url)
	if err != nil {
		return nil, err
	}
	p.topics.release(used)
	p.asked.Store(&url)
	return p, nil
}

// Publish publishes a batch, one message of a key at a time and different keys concurrently, and waits until the
// service has accepted them.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p.calls.Publish(len(messages), func() []error { return outbox.PublishByKey(ctx, messages, p.round) })
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
		return outbox.Misconfigured(err)
	}
	defer p.topics.release(topic)
	p.asked.Store(&url)
	o := &outgoing{Message: message, attributes: attributes(p.config.Format, message), topic: topic}
	err = topic.publish(ctx, o)
	if err == nil {
		return nil
	}
	ended := ctx.Err()
	if ended != nil {
		// The driver goes on with a message that was given up, and would send it after others of its key. Dropping
		// the topic ends that.
		p.topics.drop(topic)
	} else if topic.dropped.Load() {
		ended = context.Canceled // by another call, whose time was up
		p.topics.drop(topic)     // it is closed afterwards
	}
	switch {
	case ended == nil || outbox.Classify(err) == outbox.ClassTerminal && !o.sent.Load():
		return classify(fmt.Errorf("publish to %s: %w", topic.name, err))
	case !o.sent.Load():
		return outbox.ErrNotAttempted
	}
	return fmt.Errorf("publish to %s: no answer in time: %w", topic.name, ended)
}

// KeepsOrder returns true: of a key one message is under way at a time.
func (p *Publisher) KeepsOrder() bool { return true }

// Close waits for what is being published and closes the topics.
func (p *Publisher) Close() error {
	p.calls.Close()
	return p.topics.close()
}
