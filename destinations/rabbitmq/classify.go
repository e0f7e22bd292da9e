package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// classify marks an error of RabbitMQ, or of the way to it.
func (p *Publisher) classify(ctx context.Context, err error) error {
	switch {
	case err == nil, failure.Is[*outbox.UnavailableError](err), errors.Is(err, outbox.ErrNotAttempted):
		return err
	case errors.Is(err, errNack):
		return outbox.TopicUnavailable(err)
	case failure.Is[*unroutableError](err):
		return outbox.TopicMissing(err)
	case errors.Is(err, errBlocked):
		return outbox.Unavailable(err)
	case ctx.Err() != nil:
		return fmt.Errorf("no confirm of RabbitMQ in time: %w", ctx.Err())
	}
	switch code := closeCode(err); {
	case code == 0, isDestinations(code):
		return outbox.Broken(err) // the connection broke, or the server closed it
	case code == amqp.NotFound:
		return outbox.TopicMissing(fmt.Errorf("unknown exchange %q: declare it, or have it declared with ?create=true: %w", p.config.Exchange, err))
	case code == amqp.AccessRefused:
		return outbox.TopicMissing(fmt.Errorf("user %s may not write there; grant it: %w", p.config.Username, err))
	case isInvalid(err):
		return outbox.Rejected(err)
	}
	return outbox.Unclear(err)
}

// classifyDial sorts the reasons for which no connection could be had.
func classifyDial(ctx context.Context, err error) error {
	what := fmt.Errorf("connecting to RabbitMQ: %w", err)
	var closed *amqp.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // nobody waits for it any more
		return outbox.ErrNotAttempted
	case errors.Is(err, amqp.ErrSASL), closeCode(err) == amqp.AccessRefused:
		return outbox.Misconfigured(what)
	case closeCode(err) == amqp.NotAllowed && errors.As(err, &closed) && !strings.Contains(closed.Reason, "limit"):
		return outbox.Misconfigured(what) // the vhost; too many connections have the same code
	case errors.Is(err, amqp.ErrCredentials), errors.Is(err, amqp.ErrVhost):
		// The client guesses: a server that refuses a login says so.
		return outbox.Unavailable(errors.New("connecting to RabbitMQ: the connection broke during the login"))
	}
	return outbox.Unavailable(what)
}

// closeCode is the code with which the server closed a channel or a connection; 0 if it did not.
func closeCode(err error) int {
	if closed, ok := errors.AsType[*amqp.Error](err); ok && closed.Server {
		return closed.Code
	}
	return 0
}

// isDestinations reports whether a code concerns the server or the connection, and not what was published.
func isDestinations(code int) bool {
	return slices.Contains([]int{amqp.ConnectionForced, amqp.InternalError, amqp.ResourceError, amqp.NotAllowed}, code)
}

// isInvalid reports whether a channel was closed because a message on it is invalid.
func isInvalid(err error) bool { return closeCode(err) == amqp.PreconditionFailed }

// ofOne reports whether a channel may have been closed because of a single message, and not of its exchange.
func ofOne(err error) bool {
	switch code := closeCode(err); {
	case code == 0, isDestinations(code), code == amqp.NotFound, failure.Is[*outbox.UnavailableError](err):
		return false
	case code == amqp.AccessRefused:
		return !isExchangeRefused(err)
	}
	return true
}

// isExchangeRefused reports whether the user may not write to the exchange at all, whatever the routing key.
func isExchangeRefused(err error) bool {
	return closeCode(err) == amqp.AccessRefused && strings.Contains(err.Error(), "access to exchange")
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
	error
	limit int64
}

// Unwrap returns the server's error.
func (e *tooLargeError) Unwrap() error { return e.error }

var overLimit = regexp.MustCompile(`message size \d+ .*larger than .*max size (\d+)`)

// sizeError finds the limit in an error that tells of one; other errors stay as they are.
func sizeError(err error) error {
	closed, ok := errors.AsType[*amqp.Error](err)
	if !ok || closed.Code != amqp.PreconditionFailed {
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
	return &tooLargeError{err, limit}
}
