// Package calls lets a closing publisher wait for its running calls.
package calls

import (
	"errors"
	"slices"
	"sync"

	"github.com/packfinderz/outbox"
)

// Calls counts the running calls of a publisher. The zero value is open.
type Calls struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

var errClosed = errors.New("the publisher is closed")

// Begin counts a call; End must follow. It fails if the publisher is closed.
func (c *Calls) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return outbox.Unavailable(errClosed)
	}
	c.running.Add(1)
	return nil
}

// End ends a call.
func (c *Calls) End() { c.running.Done() }

// Publish makes a call for n messages. If the publisher is closed, each of them gets that error.
func (c *Calls) Publish(n int, publish func() []error) []error {
	if err := c.Begin(); err != nil {
		return slices.Repeat([]error{err}, n)
	}
	defer c.End()
	return publish()
}

// Close refuses further calls and waits for the running ones, which have their own deadlines. It reports whether it
// was the first to close.
func (c *Calls) Close() bool {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
	return first
}
