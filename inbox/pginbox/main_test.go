package pginbox_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/pgtest"
)

func TestMain(m *testing.M) {
	runConsumerIfAsked()
	pgtest.Main(m)
}
