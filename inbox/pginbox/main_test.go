package pginbox_test

import (
	"testing"

	"github.com/packfinderz/outbox/inbox/inboxtest"
	"github.com/packfinderz/outbox/internal/pgtest"
)

func TestMain(m *testing.M) {
	inboxtest.RunIfAsked(consume)
	pgtest.Main(m)
}
