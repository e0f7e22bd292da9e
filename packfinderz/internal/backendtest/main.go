package backendtest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/internal/pgtest"
)

// Main is pgtest.Main for packages whose tests have to do with Pub/Sub.
func Main(m *testing.M) {
	pgtest.Main(m,
		// The client looks only every ten seconds whether this one is to end,
		goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler"),
		// and starts this one with the program.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
