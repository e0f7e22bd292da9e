package pginbox_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

func TestMain(m *testing.M) {
	inboxtest.RunIfAsked(consume)
	pgtest.Main(m)
}
