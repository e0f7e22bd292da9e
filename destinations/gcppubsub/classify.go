package gcppubsub

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
)

// classify says what the service's answer to a publish request means.
func classify(topic string, err error) error {
	what := fmt.Errorf("publish to %s: %w", topic, err)
	switch status.Code(err) {
	case codes.NotFound:
		return outbox.TopicMissing(fmt.Errorf("topic %s is not there; create it, or let it be created with ?create=true: %w", topic, err))
	case codes.PermissionDenied:
		return outbox.TopicMissing(fmt.Errorf("these credentials may not publish to %s; grant them roles/pubsub.publisher: %w", topic, err))
	case codes.ResourceExhausted:
		if strings.Contains(err.Error(), "message larger than max") { // an emulator with a lower limit than Google's
			return outbox.TooLarge(what)
		}
		return outbox.TopicUnavailable(what) // a quota
	case codes.FailedPrecondition:
		return outbox.TopicUnavailable(what) // its encryption key or its schema, never one message
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Unauthenticated, codes.Unimplemented:
		return classifyCall(what)
	}
	// The service's own failures, which one message may cause; or an invalid argument, which may be the message's
	// fault, or that of a schema that no message of the topic fits.
	return outbox.Unclear(what)
}

// classifyCall is classify for what any request can meet on its way.
func classifyCall(err error) error {
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("no answer in time: %w: %w", context.DeadlineExceeded, err)
	case codes.Unauthenticated:
		if tokenServerAway.MatchString(err.Error()) {
			return outbox.Unavailable(err)
		}
		return outbox.Misconfigured(err)
	case codes.Unimplemented: // some other service
		return outbox.Misconfigured(err)
	}
	return outbox.Unavailable(err)
}

// tokenServerAway matches gRPC's error if no token could be fetched although nobody refused these credentials with
// a 4xx: the token server is unavailable. gRPC keeps only the text.
var tokenServerAway = regexp.MustCompile(`per-RPC creds failed .*cannot fetch token: [^4]`)
