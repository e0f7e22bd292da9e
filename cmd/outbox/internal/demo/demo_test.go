package demo_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/cmd/outbox/internal/demo"
	"github.com/packfinderz/outbox/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestDemo runs the demo for a moment. It fails by itself if orders and events differ.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Config{Rate: 50, For: 8 * time.Second, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, words := range []string{"rolled back", "order_placed", "order_shipped", "each order's in order\n", "done: "} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("the screen lacks %q:\n%s", words, out.String())
		}
	}
}
