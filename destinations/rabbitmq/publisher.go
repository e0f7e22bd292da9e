// Package rabbitmq publishes events to RabbitMQ, with publisher confirms.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/calls"
	"github.com/packfinderz/outbox/destinations/internal/failure"
	"github.com/packfinderz/outbox/destinations/wire"
)

// The limits of what is published before the confirms are awaited.
const (
	roundMessages = 1000
	roundBytes    = 8 << 20
)

// Publisher publishes events to RabbitMQ. It is safe for concurrent use.
type Publisher struct {
	config Config
	pool   pool
	calls  calls.Calls
	// limit is the size that a payload may have: the server's word counts, once it is known.
	limit atomic.Int64
}

// New returns a publisher. It connects at its first use, and again whenever the connection is lost.
func New(config Config) (*Publisher, error) {
	config = config.withDefaults()
	err := config.validate()
	if err == nil {
		config.Addresses, err = wire.Addresses(config.Addresses, defaultPort)
	}
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	p := &Publisher{config: config}
	p.limit.Store(int64(config.MaxSize))
	return p, nil
}

// KeepsOrder returns true: a message is published when the one before it of its key is confirmed.
func (p *Publisher) KeepsOrder() bool { return true }

// Close waits for running calls and closes the connections.
func (p *Publisher) Close() error {
	p.calls.Close()
	return p.pool.close()
}

// Publish publishes messages of different keys without waiting in between, and those of one key each after the one
// before it is confirmed, because RabbitMQ may refuse one message and accept the next.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) []error {
	return p.calls.Publish(len(messages), func() []error { return outbox.PublishByKey(ctx, messages, p.round) })
}

// round publishes messages that do not depend on each other.
func (p *Publisher) round(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	var left []*item
	for n := range messages {
		i, err := p.config.encode(n, &messages[n])
		if errs[n] = err; err == nil {
			left = append(left, i)
		}
	}
	most := roundMessages
	for away := false; len(left) > 0; {
		if left = p.rejectLarge(left, errs); len(left) == 0 {
			break
		}
		n := fitting(left, most)
		now := left[:n]
		left = left[n:]
		if away || ctx.Err() != nil {
			for _, i := range now {
				errs[i.place] = outbox.ErrNotAttempted
			}
			continue
		}
		for n, err := range p.try(ctx, now) {
			if p.explains(err, now) {
				// It is now known which messages were too large. Try the others again: the channel was closed
				// because of those.
				left = append(left, now[n])
				continue
			}
			if ofOne(err) && len(now) > 1 {
				// One of them is invalid, or may not be written. Sending each alone shows which.
				left, most = append(left, now[n]), 1
				continue
			}
			err = p.classify(ctx, err)
			errs[now[n].place] = err
			away = away || failure.Is[*outbox.UnavailableError](err) && !failure.OfTopic(err)
		}
	}
	return errs
}

// fitting is how many of the items go out at once.
func fitting(items []*item, most int) int {
	bytes := 0
	for n, i := range items {
		bytes += len(i.publishing.Body)
		if n == most || n > 0 && bytes > roundBytes {
			return n
		}
	}
	return len(items)
}

// rejectLarge takes out the items over the limit.
func (p *Publisher) rejectLarge(items []*item, errs []error) []*item {
	limit := p.limit.Load()
	return slices.DeleteFunc(items, func(i *item) bool {
		size := int64(len(i.publishing.Body))
		if size > limit {
			errs[i.place] = outbox.TooLarge(fmt.Errorf("the payload has %d bytes; the limit is %d", size, limit))
		}
		return size > limit
	})
}

// explains records the server's limit if an error contains it, and reports whether one of the items is over it.
func (p *Publisher) explains(err error, items []*item) bool {
	large, ok := errors.AsType[*tooLargeError](err)
	if !ok {
		return false
	}
	for known := p.limit.Load(); large.limit < known && !p.limit.CompareAndSwap(known, large.limit); {
		known = p.limit.Load()
	}
	return slices.ContainsFunc(items, func(i *item) bool { return int64(len(i.publishing.Body)) > large.limit })
}

// try publishes items on a link.
func (p *Publisher) try(ctx context.Context, items []*item) []error {
	l, err := p.pool.take(ctx, &p.config)
	if err != nil {
		return slices.Repeat([]error{err}, len(items))
	}
	defer p.pool.put(l)
	errs := l.send(ctx, &p.config, items)
	for n, err := range errs {
		errs[n] = sizeError(err)
	}
	return errs
}
