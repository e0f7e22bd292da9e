package redisinbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// bench is a Redis, a file of effects, and consumer processes that are started on them.
type bench struct {
	t       *testing.T
	broker  *redistest.Broker
	effects string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, broker: redistest.New(t), effects: filepath.Join(t.TempDir(), "effects")}
	if err := os.WriteFile(b.effects, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// count counts the effects of an event: the second halves.
func (b *bench) count(event uuid.UUID) int {
	b.t.Helper()
	text, err := os.ReadFile(b.effects)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Count(string(text), event.String()+" "+secondHalf+"\n")
}

func (b *bench) want(event uuid.UUID, effects int) {
	b.t.Helper()
	if n := b.count(event); n != effects {
		b.t.Errorf("%d effects, want %d", n, effects)
	}
}

// start starts a consumer process and waits until it is ready. It does not outlive the test.
func (b *bench) start(r role) *inboxtest.Process {
	b.t.Helper()
	r.URL, r.Effects = b.broker.URL(), b.effects
	return inboxtest.Start(b.t, r, r.StandAt)
}
