package redisinbox_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

func TestMain(m *testing.M) {
	inboxtest.RunIfAsked(play)
	goleak.VerifyTestMain(m)
}
