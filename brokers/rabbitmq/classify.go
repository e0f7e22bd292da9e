package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
)

// classify sorts an error of RabbitMQ, or of the way to it.
func (p *Publisher) classify(ctx context.Context, err error) error {
	var down *outbox.UnavailableError
	var unroutable *unroutableError
	var large *tooLargeError
	var closed *amqp.Error
	switch {
	case err == nil, errors.As(err, &down): // a link that could not be had
		return err
	case errors.Is(err, errNack), errors.As(err, &unroutable), errors.As(err, &large):
		return err
	case errors.Is(err, errBlocked):
		return outbox.Unavailable(err)
	case ctx.Err() != nil:
		return fmt.Errorf("no confirm of RabbitMQ in time: %w", ctx.Err())
	case isInvalid(err):
		return outbox.Rejected(err)
	case errors.As(err, &closed) && closed.Server:
		return p.classifyClose(err, closed)
	}
	// All the rest is a connection that broke.
	return outbox.Unavailable(err)
}

// classifyClose sorts the reasons for which the server closes a channel or a connection.
func (p *Publisher) classifyClose(err error, closed *amqp.Error) error {
	switch closed.Code {
	case amqp.NotFound:
		return fmt.Errorf("unknown exchange %q: declare it, or have it declared with ?create=true: %w", p.config.Exchange, err)
	case amqp.AccessRefused, amqp.NotAllowed, amqp.ConnectionForced, amqp.InternalError, amqp.ResourceError:
		return outbox.Unavailable(err)
	}
	return err
}

// isInvalid tells of a channel that was closed because a message on it is not as it should be.
func isInvalid(err error) bool {
	var closed *amqp.Error
	return errors.As(err, &closed) && closed.Server && closed.Code == amqp.PreconditionFailed && !errors.Is(err, errDeclaring)
}

// unroutableError is a message that no queue was found for.
type unroutableError struct{ exchange, routingKey, reason string }

// Error says what is missing.
func (e *unroutableError) Error() string {
	if e.exchange == "" {
		return fmt.Sprintf("unknown queue %q: declare it, or have it declared with ?create=true (%s)", e.routingKey, e.reason)
	}
	return fmt.Sprintf("no queue is bound to the exchange %q for the routing key %q (%s)", e.exchange, e.routingKey, e.reason)
}

// tooLargeError is a channel that was closed because a message on it is over the server's limit.
type tooLargeError struct {
	limit int64
	err   error
}

// Error is the server's text.
func (e *tooLargeError) Error() string { return e.err.Error() }

// Unwrap is the server's error.
func (e *tooLargeError) Unwrap() error { return e.err }

var overLimit = regexp.MustCompile(`message size \d+ .*larger than .*max size (\d+)`)

// sizeError finds the limit in an error that tells of one; other errors stay as they are.
func sizeError(err error) error {
	var closed *amqp.Error
	if !errors.As(err, &closed) || closed.Code != amqp.PreconditionFailed {
		return err
	}
	match := overLimit.FindStringSubmatch(closed.Reason)
	if match == nil {
		return err
	}
	limit, parseErr := strconv.ParseInt(match[1], 10, 64)
	if parseErr != nil {
		return err
	}
	return &tooLargeError{limit: limit, err: err}
}
