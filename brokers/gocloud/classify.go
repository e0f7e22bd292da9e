package gocloud

import (
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"gocloud.dev/gcerrors"

	"github.com/packfinderz/outbox"
)

// classify says what a driver's error means for the message. What it does not know may
// pass, and is retryable: a topic that is not there, quotas, timeouts.
func classify(err error) error {
	switch {
	case outbox.Classify(err) == outbox.ClassTerminal:
		return err
	case outbox.Classify(err) == outbox.ClassUnavailable, isRefused(err):
		return outbox.Unavailable(err)
	case errors.Is(err, azservicebus.ErrMessageTooLarge), gcerrors.Code(err) == gcerrors.InvalidArgument:
		return outbox.Rejected(err)
	}
	return err
}

// isRefused reports whether the service is away, or does not take these credentials.
func isRefused(err error) bool {
	var bus *azservicebus.Error
	if errors.As(err, &bus) {
		switch bus.Code {
		case azservicebus.CodeConnectionLost, azservicebus.CodeUnauthorizedAccess, azservicebus.CodeClosed:
			return true
		}
	}
	var answer interface{ HTTPStatusCode() int }
	if errors.As(err, &answer) {
		switch answer.HTTPStatusCode() {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
	}
	return gcerrors.Code(err) == gcerrors.PermissionDenied
}
