package consume

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
	return sync.OnceFunc(func() {
		close(end)
		running.Wait()
	})
}

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}
