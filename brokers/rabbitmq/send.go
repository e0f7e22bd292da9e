package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// send publishes the items, waits for the server's word on each, and gives for each nil or why it
// is not confirmed.
func (l *link) send(ctx context.Context, config *Config, items []*item) []error {
	release := l.abortWith(ctx)
	defer release()
	errs := make([]error, len(items))
	if err := l.prepare(config, items); err != nil {
		for n := range errs {
			errs[n] = l.why(err)
		}
		return errs
	}
	var failure error
	for _, i := range items {
		i.confirmation = nil
		if failure == nil {
			i.confirmation, failure = l.channel.PublishWithDeferredConfirm(config.Exchange, i.routingKey, true, false, i.publishing)
		}
	}
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
	returned := l.returned()
	for n, i := range items {
		ret, isReturned := returned[i.publishing.MessageId]
		switch acked := i.confirmation != nil && i.confirmation.Acked(); {
		case acked && isReturned:
			errs[n] = &unroutableError{exchange: config.Exchange, routingKey: i.routingKey, reason: ret.ReplyText}
		case acked:
		case failure != nil:
			errs[n] = failure
		default:
			errs[n] = errNack
		}
	}
	return errs
}

var errNack = errors.New("the queue refused the message (full, or not to be written to now)")

// prepare opens the channel and declares what may be missing.
func (l *link) prepare(config *Config, items []*item) error {
	if config.Create {
		if err := l.declare(config, items); err != nil {
			return err
		}
	}
	return l.ready()
}

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

// declare makes sure that the exchange is there, or on the default exchange the queues.
func (l *link) declare(config *Config, items []*item) error {
	if config.Exchange != "" {
		return l.declareOnce(config.Exchange, func(channel *amqp.Channel, passive bool) error {
			declare := channel.ExchangeDeclare
			if passive {
				declare = channel.ExchangeDeclarePassive
			}
			return declare(config.Exchange, amqp.ExchangeTopic, true, false, false, false, nil)
		})
	}
	for _, i := range items {
		err := l.declareOnce(i.routingKey, func(channel *amqp.Channel, passive bool) error {
			declare := channel.QueueDeclare
			if passive {
				declare = channel.QueueDeclarePassive
			}
			_, err := declare(i.routingKey, true, false, false, false, nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errDeclaring = errors.New("declaring")

// declareOnce looks first and declares only what is missing, because what is there may have been
// declared otherwise. Each has a channel of its own: RabbitMQ closes it when the answer is no.
func (l *link) declareOnce(name string, declare func(channel *amqp.Channel, passive bool) error) error {
	if l.declared[name] {
		return nil
	}
	for _, passive := range []bool{true, false} {
		channel, err := l.amqp.Channel()
		if err != nil {
			return fmt.Errorf("opening a channel: %w", err)
		}
		err = declare(channel, passive)
		if err == nil {
			l.declared[name] = true
			return channel.Close()
		}
		var closed *amqp.Error
		if !passive || !errors.As(err, &closed) || closed.Code != amqp.NotFound {
			return fmt.Errorf("%w %q: %w", errDeclaring, name, err)
		}
	}
	return nil
}
