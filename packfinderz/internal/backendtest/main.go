package backendtest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/outboxtest/testdb"
)

// Main is testdb.Main for packages whose tests have to do with Pub/Sub.
func Main(m *testing.M) {
	testdb.Main(m,
		// The client looks only every ten seconds whether this one is to end,
		goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler"),
		// and starts this one with the program.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
