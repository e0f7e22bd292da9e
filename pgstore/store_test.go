package pgstore_test

import (
	"testing"

	"github.com/packfinderz/outbox/storetest"
)

// TestConformance runs the suite on the three shipped layouts and one custom one.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, features := range map[string]storetest.Features{
		"packfinderz": {DeliveredIsKept: true},
		"doorito":     {Expires: true, Backoff: true, DeliveredIsKept: true},
		"modkit":      {Expires: true, Backoff: true, DeliveredIsKept: true, CountsOnClaim: true},
		"ours":        {Expires: true, Backoff: true, DeliveredIsKept: true, CountsOnClaim: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, features, func(t *testing.T) storetest.Harness {
				t.Helper()
				return newHarness(t, name)
			})
		})
	}
}
