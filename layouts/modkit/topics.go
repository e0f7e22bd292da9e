package modkit

import (
	"context"
	"errors"
	"slices"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
)

// byTopic is a publisher that hands each message to the handler of its topic. Topics are independent: a handler
// that hangs, or whose downstream is unavailable, does not hold up other topics.
type byTopic struct {
	set *handlers.Publisher
}

func (c *DispatcherConfig) publisher() (*byTopic, error) {
	set, err := handlers.New(handlers.Config{Timeout: c.PublishTimeout, Concurrency: c.Concurrency, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	for topic, handle := range c.Handlers {
		if err := set.Register(topic, topic, calling(handle)); err != nil {
			return nil, err
		}
	}
	if c.Otherwise != nil {
		if err := set.Otherwise("otherwise", calling(c.Otherwise)); err != nil {
			return nil, err
		}
	}
	return &byTopic{set}, nil
}

func calling(handle Handler) handlers.Func {
	return func(ctx context.Context, message outbox.Message) error {
		return handle(ctx, claimedMessage(&message, nil))
	}
}

// Publish hands messages to handlers. ModKit's messages have no type, but package handlers finds handlers by type.
func (p *byTopic) Publish(ctx context.Context, messages []outbox.Message) []error {
	typed := slices.Clone(messages)
	for i := range typed {
		typed[i].Type = typed[i].Topic
	}
	errs := p.set.Publish(ctx, typed)
	for i, err := range errs {
		var away *outbox.UnavailableError
		if errors.As(err, &away) || errors.Is(err, handlers.ErrOverdue) {
			// Keep only its text: here, even ErrNotAttempted is a reason to close the topic.
			errs[i] = outbox.TopicUnavailable(errors.New(err.Error()))
		}
	}
	return errs
}
