package pgstream_test

import (
	"testing"

	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestConformance runs the suite on a stream of one shard: the order of all events is then
// known.
func TestConformance(t *testing.T) {
	t.Parallel()
	features := storetest.Features{Expires: true, Backoff: true, InOrder: true, KeepsShare: true}
	storetest.Run(t, features, func(t *testing.T) storetest.Harness {
		t.Helper()
		return newHarness(t, pgstream.Shape{Shards: 1})
	})
}
