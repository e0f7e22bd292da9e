package demo_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packfinderz/outbox/cmd/outbox/internal/demo"
	"github.com/packfinderz/outbox/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// screen ends the demo when it has seen what it waits for.
type screen struct {
	mu   sync.Mutex
	seen bytes.Buffer
	wait string
	end  func()
}

func (s *screen) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Contains(line, []byte(s.wait)) {
		s.end()
	}
	return s.seen.Write(line)
}

// TestDemo runs the demo until it has reported once, and then as Ctrl-C would end it. It
// fails by itself if orders and events differ, or come out of order.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := &screen{wait: "── ", end: cancel}
	if err := demo.Run(ctx, demo.Config{Rate: 50, Out: out}); err != nil {
		t.Fatalf("%v\n%s", err, out.seen.String())
	}
	for _, words := range []string{"rolled back", "order_placed", "order_shipped", "each order's in order\n", "done: "} {
		if !strings.Contains(out.seen.String(), words) {
			t.Errorf("the screen lacks %q:\n%s", words, out.seen.String())
		}
	}
}
