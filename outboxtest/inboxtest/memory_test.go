package inboxtest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	inboxtest.Run(t, func(*testing.T) inboxtest.Harness { return &harness{} })
}

// harness is one Memory, which every consumer of a test shares.
type harness struct{ memory *inboxtest.Memory }

func (h *harness) Open(t testing.TB, ttl inbox.TTL) inbox.Inbox {
	t.Helper()
	if h.memory == nil {
		memory, err := inboxtest.NewMemory(ttl)
		if err != nil {
			t.Fatal(err)
		}
		h.memory = memory
	}
	return h.memory
}

func (h *harness) Expire(testing.TB) { h.memory.Expire() }

func TestMemoryRefuses(t *testing.T) {
	t.Parallel()
	if _, err := inboxtest.NewMemory(inbox.TTL{Done: time.Hour, Horizon: 2 * time.Hour}); err == nil {
		t.Error("a TTL shorter than the horizon was not refused")
	}
}
