// Package gcppubsub publishes events to Google Cloud Pub/Sub. Package gcppubsub/consumer consumes them.
//
// The publisher uses the client's own publish request rather than its queue: a relay already has batches, and the
// queue goes on sending after the caller has given up. Here nothing outlives the call of Publish.
package gcppubsub

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"golang.org/x/sync/semaphore"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/resource"
	"github.com/packfinderz/outbox/destinations/internal/calls"
	"github.com/packfinderz/outbox/internal/lanes"
)

// Publisher publishes to the topics of one project. It is safe for concurrent use.
type Publisher struct {
	config Config
	client *apiv1.TopicAdminClient
	// room bounds the requests that are under way, and their bytes, for all calls together.
	room *semaphore.Weighted
	// asked is the topic that Ping asks for: the one that was last published to.
	asked atomic.Pointer[string]

	calls calls.Calls
}

// New returns a publisher. It connects at its first use, and again whenever the connection is lost.
func New(config Config) (*Publisher, error) {
	client, err := dial(config)
	if err != nil {
		return nil, fmt.Errorf("Pub/Sub: %w", err)
	}
	p := &Publisher{config: config, client: client, room: semaphore.NewWeighted(roomBytes)}
	nobody := resource.Topic(config.Project, "outbox-ping")
	p.asked.Store(&nobody)
	return p, nil
}

// Publish publishes a batch and waits until the service has stored it. Messages of a key are sent in order, and
// none after a failed one.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p.PublishAcked(ctx, messages, func(int) {})
}

var _ outbox.AckPublisher = (*Publisher)(nil)

// PublishAcked is Publish, and calls acked with the place of each message once the service has stored it.
func (p *Publisher) PublishAcked(ctx context.Context, messages []outbox.Message, acked func(place int)) []error {
	if err := p.calls.Begin(); err != nil {
		return slices.Repeat([]error{err}, len(messages))
	}
	defer p.calls.End()
	b := &batch{
		Publisher: p, acked: acked, errs: make([]error, len(messages)), begun: make([]time.Time, len(messages)), ended: make([]time.Time, len(messages)),
	}
	var running sync.WaitGroup
	for _, l := range p.plan(messages) {
		running.Go(func() { b.run(ctx, l) })
	}
	running.Wait()
	lanes.Overtake(messages, b.errs, b.begun, b.ended)
	return b.errs
}

// KeepsOrder returns true unless the publisher is configured to be unordered.
func (p *Publisher) KeepsOrder() bool { return !p.config.Unordered }

// Close waits for what is being published and closes the connection, unless it is that of a client that was given.
func (p *Publisher) Close() error {
	if !p.calls.Close() || p.config.Client != nil {
		return nil
	}
	if err := p.client.Close(); err != nil {
		return fmt.Errorf("Pub/Sub: close the connection: %w", err)
	}
	return nil
}
