package consumetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/packfinderz/outbox"
)

// Stubborn handles Events(12, 2). The first event fails until the other key's are handled.
type Stubborn struct {
	*Record
	failures atomic.Int32
	others   chan struct{}
}

// NewStubborn makes one.
func NewStubborn() *Stubborn { return &Stubborn{Record: NewRecord(), others: make(chan struct{})} }

// Handle is its handler.
func (s *Stubborn) Handle(_ context.Context, m outbox.Message) error {
	if m.Headers["n"] == "0" {
		if s.failures.Add(1) == 1 {
			return errors.New("not yet")
		}
		select {
		case <-s.others:
		default:
			return errors.New("not yet")
		}
	}
	s.Add(m)
	if m.Headers["n"] == "11" {
		close(s.others)
	}
	return nil
}

// Check waits for the events: those behind the failing one waited, those of the other key did
// not, and each key's were in order.
func (s *Stubborn) Check(t testing.TB) {
	t.Helper()
	order := make(map[string][]string) // by aggregate
	for i, m := range s.Await(t, 12) {
		order[m.AggregateID] = append(order[m.AggregateID], m.Headers["n"])
		if m.AggregateID != "0" && i >= 6 {
			t.Errorf("event %s waited for another key", m.Headers["n"])
		}
	}
	if fmt.Sprint(order) != "map[0:[0 2 4 6 8 10] 1:[1 3 5 7 9 11]]" || s.failures.Load() < 2 {
		t.Errorf("handled %v after %d failures", order, s.failures.Load())
	}
}

// Gate handles a number of events and then stands still, until it is opened.
type Gate struct {
	*Record
	// Reached is closed when it stands.
	Reached chan struct{}

	after int
	once  sync.Once
	open  chan struct{}
}

// NewGate makes one that stands still after so many events.
func NewGate(after int) *Gate {
	return &Gate{Record: NewRecord(), Reached: make(chan struct{}), after: after, open: make(chan struct{})}
}

// Handle is its handler.
func (g *Gate) Handle(_ context.Context, m outbox.Message) error {
	if len(g.All()) >= g.after {
		g.once.Do(func() { close(g.Reached) })
		<-g.open
	}
	g.Add(m)
	return nil
}

// Open lets everything through.
func (g *Gate) Open() { close(g.open) }
