package outboxtest

import (
	"context"
	"testing"

	"github.com/packfinderz/outbox"
)

// Stop ends a relay, and fails the test if something was not settled.
func Stop(t testing.TB, relay *outbox.Relay) {
	t.Helper()
	// Not the test's context, which has ended by the time of a cleanup.
	if err := relay.Stop(context.Background()); err != nil {
		t.Errorf("stop the relay: %v", err)
	}
}
