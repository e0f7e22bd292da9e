package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
)

// classify marks an error of RabbitMQ, or of the way to it.
func (p *Publisher) classify(ctx context.Context, err error) error {
	var known *outbox.UnavailableError
	var unroutable *unroutableError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, outbox.ErrNotAttempted):
		return err
	case errors.Is(err, errNack):
		return outbox.TopicUnavailable(err)
	case errors.As(err, &unroutable):
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
	var closed *amqp.Error
	if errors.As(err, &closed) && closed.Server {
		return closed.Code
	}
	return 0
}

// isDestinations reports whether a code is about the whole server or the connection, and not about
// what was published.
func isDestinations(code int) bool {
	switch code {
	case amqp.ConnectionForced, amqp.InternalError, amqp.ResourceError, amqp.NotAllowed:
		return true
	}
	return false
}

// isInvalid tells of a channel that was closed because a message on it is not as it should be.
func isInvalid(err error) bool { return closeCode(err) == amqp.PreconditionFailed }

// ofOne reports whether a channel may have been closed because of a single message on it. One that
// was closed for its exchange was closed for all.
func ofOne(err error) bool {
	var known *outbox.UnavailableError
	switch code := closeCode(err); {
	case code == 0, isDestinations(code), code == amqp.NotFound, errors.As(err, &known):
		return false
	case code == amqp.AccessRefused:
		return !isExchangeRefused(err)
	}
	return true
}

// isExchangeRefused reports whether the user may not write to the exchange at all. The right may
// also be missing for some routing keys of it only.
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
	limit int64
	err   error
}

// Error returns the server's text.
func (e *tooLargeError) Error() string { return e.err.Error() }

// Unwrap returns the server's error.
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
