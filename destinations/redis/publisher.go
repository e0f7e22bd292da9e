// Package redis publishes events to Redis Streams. Package redis/consumer consumes them.
package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"encoding/hex"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/calls"
)

// Publisher adds events to Redis Streams. It is safe for concurrent use.
type Publisher struct {
	config Config
	client goredis.UniversalClient
	digest string
	// last is the stream that was added to last, which Ping asks about.
	last  atomic.Pointer[string]
	calls calls.Calls
}

// New returns a publisher. It connects at its first use, and again whenever the connection is lost.
func New(config Config) (*Publisher, error) {
	config = config.withDefaults()
	options, err := config.ClientOptions()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	sum := sha1.Sum([]byte(addScript)) //nolint:gosec // as above
	return &Publisher{config: config, client: goredis.NewUniversalClient(options), digest: hex.EncodeToString(sum[:])}, nil
}

// KeepsOrder returns true: the script that adds a batch stops at a key's first failure.
func (p *Publisher) KeepsOrder() bool { return true }

// Close waits for running calls and closes the connections.
func (p *Publisher) Close() error {
	if !p.calls.Close() {
		return nil
	}
	return p.client.Close()
}

// Publish adds the messages to their streams, a round trip per 1,000 messages or 8 MiB.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	if err := p.calls.Begin(); err != nil {
		return slices.Repeat([]error{err}, len(messages))
	}
	defer p.calls.End()
	b := batch{config: &p.config, messages: messages, errs: make([]error, len(messages)), failed: make(map[string]bool)}
	b.prepare()
	for calls := b.next(); len(calls) > 0; calls = b.next() {
		if b.away || over(ctx) {
			b.giveUp(calls)
			continue
		}
		p.last.Store(&calls[0].stream)
		p.run(ctx, calls)
		for _, c := range calls {
			b.settle(ctx, c)
		}
	}
	return b.errs
}

// over reports whether no time is left. A connection notices that a moment before the context does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
