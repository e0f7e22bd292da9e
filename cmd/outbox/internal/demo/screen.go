package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/packfinderz/outbox"
)

// screen shows what happens. It is the demo's broker, too, and checks that the steps of every
// order arrive in order.
type screen struct {
	mu                  sync.Mutex
	out                 io.Writer
	delivered, disorder int64
	last                map[string]int
}

// say prints a line. A screen that is gone is no reason to stop.
func (s *screen) say(format string, args ...any) {
	line := fmt.Sprintf(format+"\n", args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.out, line)
}

// Publish shows the messages.
func (s *screen) Publish(_ context.Context, messages []outbox.Message) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = make(map[string]int)
	}
	for i := range messages {
		m := &messages[i]
		step := slices.Index(steps, m.Type) + 1
		if step != s.last[m.Key]+1 {
			s.disorder++
		}
		s.last[m.Key] = step
		s.delivered++
		_, _ = fmt.Fprintf(s.out, "delivered %-10s %-13s  %s  %s after its transaction began\n", m.Key, m.Type, m.Payload,
			time.Since(m.CreatedAt).Round(100*time.Microsecond))
	}
	return make([]error, len(messages))
}

// KeepsOrder is true: nothing fails here.
func (s *screen) KeepsOrder() bool { return true }

// String is what was seen so far.
func (s *screen) String() string {
	delivered, disorder := s.numbers()
	if disorder > 0 {
		return fmt.Sprintf("%d events delivered, %d out of order", delivered, disorder)
	}
	return fmt.Sprintf("%d events delivered, each order's in order", delivered)
}

func (s *screen) numbers() (delivered, disorder int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered, s.disorder
}
