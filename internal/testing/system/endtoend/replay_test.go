//go:build unix

package endtoend

import (
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestReplay replays events to a broker that has just seen their ids and would not store them
// twice: a replay is not a duplicate.
func TestReplay(t *testing.T) {
	t.Parallel()
	const events = 100
	r := newRun(t, program(t), natstest.New(t))
	if err := r.emit(events); err != nil {
		t.Fatal(err)
	}
	relay := r.relay()
	r.awaitDelivered(relay, events)
	process.Start(t, filepath.Join(r.folder, "replay.log"), nil, r.program, "replay", "--from", r.url, "--topic", publishertest.Topic).MustSucceed(t)
	r.await(relay, "the replayed events to arrive", func() bool { return len(r.broker.Received(t)) >= 2*events })
	r.stop(relay)
	times := make(map[uuid.UUID]int)
	for _, got := range r.broker.Received(t) {
		times[got.ID]++
	}
	for id, n := range times {
		if n != 2 || r.emitted[id] == nil {
			t.Errorf("event %s arrived %d times, want 2", id, n)
		}
	}
}
