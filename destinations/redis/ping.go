package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/destinations/internal/failure"
	"github.com/packfinderz/outbox/destinations/redis/internal/field"
)

// pingStream is asked about before anything was published.
const pingStream = "outbox:ping"

// Ping checks that entries would be accepted now; see probe. If the stream it asks about is missing or another
// user's, Redis is available.
func (p *Publisher) Ping(ctx context.Context) error {
	stream := p.config.Prefix + pingStream
	if last := p.last.Load(); last != nil {
		stream = *last
	}
	if err := p.probe(ctx, stream); err != nil && !failure.OfTopic(err) {
		return err
	}
	return nil
}

// PingTopic checks that an entry would be accepted in the topic's stream.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	return p.probe(ctx, p.config.Prefix+topic)
}

// probe adds an entry with an id that Redis refuses only after it has checked the credentials, the
// memory, the disk and whether it may write at all.
func (p *Publisher) probe(ctx context.Context, stream string) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	c := newCall(&p.config, stream, noID)
	c.add(0, "", []any{field.Payload, ""})
	p.run(ctx, []*call{c})
	answers, err := c.answers()
	if err == nil && !strings.Contains(answers[0], noIDRefused) {
		err = replyError(answers[0])
	}
	if err != nil {
		return fmt.Errorf("asking Redis: %w", classify(ctx, stream, err))
	}
	return nil
}
