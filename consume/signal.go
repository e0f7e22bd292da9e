package consume

import "context"

// Signal tells whoever awaits something that it may have come. The consumers of all brokers wait with it for room.
type Signal chan struct{}

// NewSignal makes a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Send wakes who awaits, now or the next time. It does not block.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // it has been told
	}
}

// Await waits until a function answers a number above zero, and returns that; 0 if ctx ended first. It asks at once and
// after every Send.
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
