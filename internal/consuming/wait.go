// Package consuming has what the consumers of all brokers need besides package consume.
package consuming

import (
	"context"
	"sync"
	"time"
)

// Every calls a function at an interval until stop is called. stop waits for a running call.
func Every(interval time.Duration, call func()) (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				call()
			}
		}
	})
	return func() {
		close(end)
		running.Wait()
	}
}

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

// Signal wakes a goroutine that waits for a condition.
type Signal chan struct{}

// NewSignal returns a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Send wakes the waiting goroutine, or the next one that waits. It does not block.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // it is already awake
	}
}

// Await calls ready at once and after every Send, until it returns a number above zero. Await returns that number,
// or 0 if ctx ended first.
func (s Signal) Await(ctx context.Context, ready func() int) int {
	for ctx.Err() == nil {
		if n := ready(); n > 0 {
			return n
		}
		select {
		case <-s:
		case <-ctx.Done():
		}
	}
	return 0
}
