package gcppubsub_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// Credentials that are refused are a wrong setting; a token server that is away is not.
func TestTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"invalid_grant" "account not found"`:                                                            "misconfigured",
		"cannot fetch token: 403\nResponse: no":                                                          "misconfigured",
		"cannot fetch token: 503\nResponse: later":                                                       "away",
		`cannot fetch token: Post "https://oauth2.googleapis.com/token": dial tcp: i/o timeout`:          "away",
		`cannot fetch token: Post "https://oauth2.googleapis.com/token": read: connection reset by peer`: "away",
	} {
		err := status.Errorf(codes.Unauthenticated, "transport: per-RPC creds failed due to error: auth: %s", text)
		publishertest.Fates(t, []error{gcppubsub.Classify("orders", err)}, want)
	}
}
