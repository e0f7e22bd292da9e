package gocloud

import (
	"context"
	"errors"
	"fmt"

	"gocloud.dev/gcerrors"

	"github.com/packfinderz/outbox"
)

// pinger is a sender that can ask for its topic or queue without sending a message.
type pinger interface {
	ping(ctx context.Context) error
}

// Ping checks that the service answers and accepts these credentials. A missing topic or queue is the destination's
// fault only if all events go there. If a driver cannot ask, Ping succeeds: a few messages will tell.
func (p *Publisher) Ping(ctx context.Context) error {
	err := p.ask(ctx, *p.asked.Load())
	away, ok := errors.AsType[*outbox.UnavailableError](err)
	switch {
	case !ok || !away.Topic:
		return err
	case p.config.hasTopic():
		return nil
	case away.Setting:
		return outbox.Misconfigured(err)
	}
	return outbox.Unavailable(err)
}

// PingTopic is Ping for the messages of a topic, and checks that their topic or queue exists.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	url, err := p.config.topicURL(&outbox.Message{Event: outbox.Event{Topic: topic}})
	if err != nil {
		return err
	}
	return p.ask(ctx, url)
}

// ask asks for a topic. "Not allowed to ask" is an answer, too: the right to publish does not include the right to
// ask.
func (p *Publisher) ask(ctx context.Context, url string) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	topic, err := p.topics.acquire(url)
	if err != nil {
		return outbox.Misconfigured(err)
	}
	defer p.topics.release(topic)
	asking, ok := topic.sender.(pinger)
	if !ok {
		return nil
	}
	err = asking.ping(ctx)
	if err == nil || isDenied(err) {
		return nil
	}
	return classify(fmt.Errorf("ask for %s: %w", topic.name, err))
}

// isDenied reports whether the service knows us, but we may not do this.
func isDenied(err error) bool {
	if gcerrors.Code(err) == gcerrors.PermissionDenied {
		return true
	}
	code, _ := amazonCode(err)
	return code == "AccessDenied" || code == "AccessDeniedException" || code == "AuthorizationError"
}
