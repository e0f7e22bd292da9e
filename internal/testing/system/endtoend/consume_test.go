//go:build unix

package endtoend

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/process"
)

const consumedEvents = 5000

// TestConsumeOnce takes events the whole way, from a producer to the effect that a consumer
// writes: while relays are killed, and some acknowledgements are lost, each event has exactly
// one effect.
func TestConsumeOnce(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		kills = 50
	}
	program := program(t)
	for name, subscribe := range subscriptions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			effects := &effects{}
			s := subscribe(t, effects)
			r := newRun(t, program, s.broker)
			effects.open(t, r.url)
			stop := consuming(t, s)
			r.killRelays(kills)
			effects.awaitAll(len(r.emitted), s.idle)
			stop()
			effects.check(r.emitted)
			t.Logf("%d kills; %d copies were published, %d deliveries made", kills, len(s.broker.Received(t)), effects.deliveries())
		})
	}
}

// killRelays emits all events, share by share, and kills a relay in the middle of each. The last
// relay delivers the rest.
func (r *run) killRelays(kills int) {
	r.Helper()
	share := consumedEvents / kills
	for range kills {
		before := r.delivered()
		if err := r.emit(share); err != nil {
			r.Fatal(err)
		}
		relay := r.killable()
		r.awaitDelivered(relay, before+rand.Int64N(int64(share)/2)+1)
		relay.Signal(r.T, syscall.SIGKILL)
		relay.Wait(r.T)
	}
	relay := r.killable()
	r.awaitDelivered(relay, int64(len(r.emitted)))
	r.stop(relay)
}

// killable starts a relay whose part another takes over soon, and which is long at its work.
func (r *run) killable() *process.Process {
	r.Helper()
	return process.Start(r.T, filepath.Join(r.folder, "relay.log"), nil, r.program,
		"relay", "--from", r.url, "--to", r.broker.URL(), "--poll", "100ms", "--lease", "1s", "--batch-size", "20")
}

// consuming runs consumers until the test stops them.
func consuming(t *testing.T, s *subscription) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(s.consumers))
	for _, consumer := range s.consumers {
		go func() { ended <- consumer.Run(ctx) }()
	}
	stop = sync.OnceFunc(func() {
		cancel()
		for range s.consumers {
			if err := <-ended; err != nil {
				t.Errorf("a consumer ended with %v", err)
			}
		}
	})
	t.Cleanup(stop)
	return stop
}
