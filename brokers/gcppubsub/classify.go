package gcppubsub

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
)

// classify says what the service's answer means for the message. What it does not name
// (quotas, timeouts, the service's own troubles) may pass, and is retryable.
func classify(topic string, err error) error {
	switch status.Code(err) {
	case codes.InvalidArgument:
		return outbox.Rejected(fmt.Errorf("publish to %s: %w", topic, err))
	case codes.Unavailable, codes.Unauthenticated, codes.PermissionDenied:
		return outbox.Unavailable(fmt.Errorf("publish to %s: %w", topic, err))
	case codes.NotFound:
		return fmt.Errorf("topic %s is not there; create it, or let it be created with ?create=true: %w", topic, err)
	default:
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
}
