package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/internal/pgtest"
)

func TestMain(m *testing.M) {
	// A dependency of the Pub/Sub client starts it when it is loaded.
	pgtest.Main(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
