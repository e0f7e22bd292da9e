package gocloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"gocloud.dev/gcerrors"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// classify says what a driver's error means.
func classify(err error) error {
	switch {
	case failure.Is[*outbox.TerminalError](err), failure.Is[*outbox.UnavailableError](err), errors.Is(err, outbox.ErrNotAttempted):
		return err
	case outbox.Classify(err) == outbox.ClassUnavailable: // on the way there
		return outbox.Unavailable(err)
	case outbox.Classify(err) == outbox.ClassUnclear: // silence
		return err
	}
	for _, classify := range []func(error) error{classifyAmazon, classifyBus, classifyHTTP, classifyCode} {
		if sorted := classify(err); sorted != nil {
			return sorted
		}
	}
	return outbox.Unclear(err)
}

// classifyHTTP goes by the status of an answer, where there is one that tells.
func classifyHTTP(err error) error {
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &answer) {
		return nil
	}
	switch answer.HTTPStatusCode() {
	case http.StatusUnauthorized:
		return outbox.Misconfigured(err)
	case http.StatusForbidden:
		return outbox.TopicMissing(err)
	case http.StatusTooManyRequests:
		return outbox.TopicUnavailable(err)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return outbox.Unavailable(err)
	}
	return nil
}

// classifyCode goes by the code that gocloud.dev has for the errors of all drivers.
func classifyCode(err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.InvalidArgument:
		return outbox.Unclear(err) // the message, or what the topic was set up to be: SQS wants a group for its FIFO queues
	case gcerrors.NotFound, gcerrors.PermissionDenied:
		return outbox.TopicMissing(err)
	case gcerrors.ResourceExhausted, gcerrors.FailedPrecondition:
		return outbox.TopicUnavailable(err)
	case gcerrors.DeadlineExceeded, gcerrors.Canceled:
		return silence(err)
	}
	return nil
}

// silence is an error that says that no answer came in time.
func silence(err error) error { return fmt.Errorf("%w: %w", context.DeadlineExceeded, err) }
