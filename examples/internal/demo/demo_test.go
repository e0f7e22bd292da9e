package demo_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packfinderz/outbox/examples/internal/demo"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// screen ends the demo when it has seen all that it waits for.
type screen struct {
	mu   sync.Mutex
	seen bytes.Buffer
	wait []string
	end  func()
}

func (s *screen) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Write(line)
	for _, words := range s.wait {
		if !bytes.Contains(s.seen.Bytes(), []byte(words)) {
			return len(line), nil
		}
	}
	s.end()
	return len(line), nil
}

// TestDemo runs the demo until the broker has been away and events have died, and then as Ctrl-C
// would end it. It fails by itself if orders, events and the ledger do not agree.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := &screen{wait: []string{"the broker is back", "dead  ", "failed  ", "── "}, end: cancel}
	err := demo.Run(ctx, demo.Config{Rate: 50, OutageEvery: 2 * time.Second, OutageFor: time.Second, Console: "127.0.0.1:0", Out: out})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.seen.String())
	}
	for _, words := range []string{"rolled back", "order_placed", "http://127.0.0.1:", "done: ", "Nothing is lost"} {
		if !strings.Contains(out.seen.String(), words) {
			t.Errorf("the screen lacks %q:\n%s", words, out.seen.String())
		}
	}
}
