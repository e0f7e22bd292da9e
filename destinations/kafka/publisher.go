// Package kafka publishes events to Apache Kafka. Package kafka/consumer consumes them.
//
// A message counts as published once all in-sync replicas have it (acks=all). The producer is
// idempotent: what the client sends again by itself is stored once. What the relay sends again
// after a crash or a timeout may be stored twice.
package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/calls"
)

// Publisher publishes to the topics of a Kafka cluster. It is safe for concurrent use; overlapping calls take turns.
type Publisher struct {
	config  Config
	options []kgo.Opt
	health  *health
	turn    chan struct{} // held by the wave that is under way
	calls   calls.Calls

	mu      sync.Mutex
	client  *kgo.Client
	worn    bool           // the next batch is sent by a new client
	closing sync.WaitGroup // clients that were replaced

	// Sets of topics, as far as the client knows them.
	known  sync.Map // they exist
	warm   sync.Map // the client knows their partitions
	silent sync.Map // a message got no answer, and none did since
}

// New returns a publisher. It connects at its first use, and again whenever a connection is lost.
func New(config Config) (*Publisher, error) {
	config = config.withDefaults()
	watch := &health{}
	options, err := config.publisherOptions()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	p := &Publisher{
		config: config, options: append(options, kgo.WithHooks(watch)), health: watch, turn: make(chan struct{}, 1),
	}
	if err := p.connect(); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return p, nil
}

// KeepsOrder returns true; see batch.
func (p *Publisher) KeepsOrder() bool { return true }

// Publish publishes the messages, each to its topic, and waits until the in-sync replicas have them.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	b := &batch{
		publisher: p, messages: messages, errs: make([]error, len(messages)),
		records: make([]*kgo.Record, len(messages)), sizes: make([]int, len(messages)),
		failed: make(map[string]bool), closed: make(map[string]bool),
	}
	return p.calls.Publish(len(messages), func() []error { return b.publish(ctx) })
}

// Close waits for running calls, which have their own deadlines, and closes the connections.
func (p *Publisher) Close() error {
	p.calls.Close()
	p.closing.Wait()
	p.current().Close()
	return nil
}
