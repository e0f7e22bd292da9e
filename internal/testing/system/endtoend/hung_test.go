//go:build unix

package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// hungEvery is how often a hundred events are emitted while the broker hangs: 200 a second.
const hungEvery = 500 * time.Millisecond

// hungFor is how long the broker hangs.
func hungFor() time.Duration {
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		return 10 * time.Minute
	}
	return 5 * time.Second
}

// TestHung stops the broker's process without ending it, with the default settings: its connections
// stay, and nothing is answered. Nothing is counted meanwhile, the relay is not ready and its memory
// does not grow, and everything arrives afterwards.
func TestHung(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	r := newRun(t, program(t), server)
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	ready := "http://" + testserver.Loopback(port) + "/readyz"
	relay := process.Start(t, filepath.Join(r.folder, "relay.log"), nil, r.program,
		"relay", "--from", r.url, "--to", server.URL(), "--listen", testserver.Loopback(port))
	r.await(relay, "the relay to be ready", func() bool { return readiness(ready) == nil })
	if err := r.emit(1000); err != nil {
		t.Fatal(err)
	}
	r.awaitDelivered(relay, 500)
	thaw := server.Freeze(t)
	pace, over := time.NewTicker(hungEvery), time.After(hungFor())
	defer pace.Stop()
	noticed := false
	for hangs := true; hangs || !noticed; {
		if err := r.emit(100); err != nil {
			t.Fatal(err)
		}
		r.measure(relay)
		err := readiness(ready)
		switch {
		case err == nil && noticed:
			t.Error("the relay says that it is ready while the broker hangs")
		case err != nil && !noticed:
			noticed = true
			if !strings.Contains(err.Error(), "destination closed since") {
				t.Errorf("the relay is not ready because: %v", err)
			}
		}
		select {
		case <-pace.C:
		case <-over:
			hangs = false
		}
	}
	back := time.Now()
	before := r.delivered()
	thaw()
	r.awaitDelivered(relay, before+1)
	first := time.Since(back)
	r.awaitDelivered(relay, int64(len(r.emitted)))
	r.stop(relay) // which looks for events that were counted
	t.Logf("the broker hung for %s; the first publish came %s after", hungFor(), first.Round(time.Millisecond))
	if os.Getenv("OUTBOX_CHAOS") == "long" && first > 5*time.Second {
		t.Errorf("the first publish came %s after the broker was back", first)
	}
	r.check(broker{}, 2) // what was under way when it froze may come again
}

// readiness asks a relay whether it is ready.
func readiness(url string) error {
	response, err := http.Get(url) //nolint:noctx // it answers at once, or the test hangs
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %s", response.StatusCode, text)
	}
	return nil
}
