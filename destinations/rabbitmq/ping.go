package rabbitmq

import (
	"context"
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// anyTopic is the routing key of a ping that is about no topic.
const anyTopic = "outbox.ping"

// Ping checks that messages would be accepted now: the credentials, the vhost, the exchange, the right to write to
// it, and that the server is not short of memory or disk.
func (p *Publisher) Ping(ctx context.Context) error {
	return p.onLink(ctx, func(l *link) error {
		err := p.classify(ctx, l.probe(ctx, &p.config, anyTopic))
		switch {
		case closeCode(err) == amqp.AccessRefused && !isExchangeRefused(err):
			return nil // not for this routing key, which nobody uses
		case failure.OfTopic(err):
			return outbox.Misconfigured(err) // all topics go there
		}
		return err
	})
}

// PingTopic is Ping for the messages of a topic. On the default exchange it checks that their queue exists. For
// other exchanges the queues behind them cannot be asked for.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	message := outbox.Message{Event: outbox.Event{Topic: topic}}
	routingKey, known := p.config.routingKey(&message), p.config.routesByTopic()
	if !known {
		routingKey = anyTopic
	}
	return p.onLink(ctx, func(l *link) error {
		err := l.probe(ctx, &p.config, routingKey)
		if !known && closeCode(err) == amqp.AccessRefused && !isExchangeRefused(err) {
			err = nil
		}
		if err == nil && known && p.config.Exchange == "" && !p.config.Create {
			err = l.lookFor(ctx, routingKey)
		}
		return p.classify(ctx, err)
	})
}

// onLink asks something on a link.
func (p *Publisher) onLink(ctx context.Context, ask func(*link) error) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	l, err := p.pool.take(ctx, &p.config)
	if err != nil {
		return err
	}
	defer p.pool.put(l)
	return ask(l)
}

// probe publishes a message whose time to live is no number. RabbitMQ refuses it only after it has checked the exchange
// and the right to write to it. A server that is short of memory or disk reads nothing after it.
func (l *link) probe(ctx context.Context, config *Config, routingKey string) error {
	ping := &item{routingKey: routingKey, publishing: amqp.Publishing{Expiration: "ping"}}
	settings := *config
	settings.Create = config.Create && config.Exchange != "" // no queue is made for it
	err := l.send(ctx, &settings, []*item{ping})[0]
	switch {
	case err == nil:
		return outbox.Unclear(errors.New("the ping was taken for a message"))
	case isInvalid(err) && strings.Contains(err.Error(), "expiration"):
		return l.reads(ctx)
	case closeCode(err) == amqp.AccessRefused: // the server is there, but may be blocked
		if unread := l.reads(ctx); unread != nil {
			return unread
		}
	}
	return err
}

// lookFor asks whether a queue is there, and answers. Who may not ask may be allowed to publish.
func (l *link) lookFor(ctx context.Context, queue string) error {
	release := l.abortWith(ctx)
	defer release()
	channel, err := l.amqp.Channel()
	if err == nil {
		err = declare(channel, queue, false, true)
	}
	switch closeCode(err) {
	case amqp.NotFound:
		return &unroutableError{routingKey: queue, reason: "NOT_FOUND"}
	case amqp.AccessRefused, amqp.ResourceLocked:
		return nil
	}
	if err != nil {
		return l.why(err)
	}
	return channel.Close()
}
