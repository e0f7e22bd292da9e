package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
)

// send publishes the items, waits for the server's answer to each, and returns nil or an error for each.
func (l *link) send(ctx context.Context, config *Config, items []*item) []error {
	release := l.abortWith(ctx)
	defer release()
	if err := l.ready(); err != nil {
		return slices.Repeat([]error{unready(ctx, l.why(err))}, len(items))
	}
	errs := make([]error, len(items))
	failure := l.publish(config, items, errs)
	for _, i := range items {
		if i.confirmation != nil {
			// A connection or channel that ends, ends the waiting.
			<-i.confirmation.Done()
		}
	}
	if closed := l.closed(); closed != nil {
		failure = closed
	}
	failure = l.why(failure)
	l.settle(config, items, errs, failure)
	return errs
}

// unready is why nothing was sent on a link that has no channel.
func unready(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return outbox.ErrNotAttempted
	case ctx.Err() != nil:
		return outbox.Unavailable(fmt.Errorf("RabbitMQ opens no channel in time: %w", err))
	}
	return err
}

// publish writes the items, until the channel or the connection fails. Those that cannot be declared get an error.
func (l *link) publish(config *Config, items []*item, errs []error) (failure error) {
	refused := make(map[string]error)
	for n, i := range items {
		i.confirmation, i.tried = nil, false
		if failure != nil {
			continue
		}
		if config.Create {
			if errs[n], failure = l.declare(config, i, refused); errs[n] != nil || failure != nil {
				continue
			}
		}
		i.tried = true
		i.confirmation, failure = l.channel.PublishWithDeferredConfirm(config.Exchange, i.routingKey, true, false, i.publishing)
	}
	return failure
}

// settle records the result of each item, published or not.
func (l *link) settle(config *Config, items []*item, errs []error, failure error) {
	returned := l.returned()
	for n, i := range items {
		ret, isReturned := returned[i.publishing.MessageId]
		switch acked := i.confirmation != nil && i.confirmation.Acked(); {
		case errs[n] != nil:
		case acked && isReturned:
			errs[n] = &unroutableError{exchange: config.Exchange, routingKey: i.routingKey, reason: ret.ReplyText}
			delete(l.declared, i.routingKey) // its queue may be gone
		case acked:
		case failure == nil:
			errs[n] = errNack
		case !i.tried && !ofChannel(failure):
			errs[n] = outbox.ErrNotAttempted
		default:
			errs[n] = failure
		}
	}
	if closeCode(failure) == amqp.NotFound {
		delete(l.declared, config.Exchange)
	}
}

// ofChannel reports whether the server closed the channel for what was published on it. That concerns all items, sent
// or not.
func ofChannel(err error) bool { return closeCode(err) != 0 && !isDestinations(closeCode(err)) }

var errNack = errors.New("the queue refused the message (full, or not to be written to now)")

// closed is why the channel was closed, or nil.
func (l *link) closed() error {
	if !l.channel.IsClosed() {
		return nil
	}
	select {
	case err := <-l.closes:
		if err != nil {
			return err
		}
	default:
	}
	return amqp.ErrClosed
}

// returned are the messages that came back, by id. A message comes back before it is confirmed.
func (l *link) returned() map[string]amqp.Return {
	var list map[string]amqp.Return
	for {
		select {
		case ret, ok := <-l.returns:
			if !ok {
				return list
			}
			if list == nil {
				list = make(map[string]amqp.Return)
			}
			list[ret.MessageId] = ret
		default:
			return list
		}
	}
}

// declare makes sure that an item's exchange exists, or its queue on the default exchange. It returns an error of the
// item, or else of the link. refused has the names that were refused before.
func (l *link) declare(config *Config, i *item, refused map[string]error) (ofItem, failure error) {
	name := cmp.Or(config.Exchange, i.routingKey)
	if err := refused[name]; err != nil {
		return err, nil
	}
	err := l.declareOnce(name, config.Exchange != "")
	switch {
	case err == nil, !ofChannel(err):
		return nil, err
	case closeCode(err) == amqp.AccessRefused:
		refused[name] = outbox.TopicMissing(err)
	default:
		refused[name] = outbox.TopicUnavailable(err)
	}
	return refused[name], nil
}

// declareOnce looks first and declares only what is missing, because an existing one may have been declared
// differently. Each look has its own channel: RabbitMQ closes it if the answer is no.
func (l *link) declareOnce(name string, isExchange bool) error {
	if l.declared[name] {
		return nil
	}
	for _, passive := range []bool{true, false} {
		channel, err := l.amqp.Channel()
		if err != nil {
			return fmt.Errorf("opening a channel: %w", err)
		}
		err = declare(channel, name, isExchange, passive)
		if err == nil {
			l.declared[name] = true
			return channel.Close()
		}
		if !passive || closeCode(err) != amqp.NotFound {
			return fmt.Errorf("declaring %q: %w", name, err)
		}
	}
	return nil
}

// declare declares an exchange or a queue; passive only checks that it exists.
func declare(channel *amqp.Channel, name string, isExchange, passive bool) (err error) {
	switch {
	case isExchange && passive:
		return channel.ExchangeDeclarePassive(name, amqp.ExchangeTopic, true, false, false, false, nil)
	case isExchange:
		return channel.ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil)
	case passive:
		_, err = channel.QueueDeclarePassive(name, true, false, false, false, nil)
	default:
		_, err = channel.QueueDeclare(name, true, false, false, false, nil)
	}
	return err
}
