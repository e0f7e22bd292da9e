package consume

import (
	"context"
	"hash/maphash"
	"sync"
)

// Lanes run work side by side, but work of one key one after the other, in the order in which
// it was given. At most so many run at once, and as many wait.
type Lanes struct {
	seed  maphash.Seed
	lanes []chan func()
	next  int
	wg    sync.WaitGroup
}

// NewLanes starts n lanes.
func NewLanes(n int) *Lanes {
	l := &Lanes{seed: maphash.MakeSeed(), lanes: make([]chan func(), max(n, 1))}
	for i := range l.lanes {
		l.lanes[i] = make(chan func(), 1)
		l.wg.Go(func() {
			for work := range l.lanes[i] {
				work()
			}
		})
	}
	return l
}

// Go runs work in the lane of its key; without a key, in any. It waits while that lane is
// full, and reports false when ctx ended first. It is for one goroutine.
func (l *Lanes) Go(ctx context.Context, key string, work func()) bool {
	lane := l.next
	if key != "" {
		lane = int(maphash.String(l.seed, key) % uint64(len(l.lanes))) //nolint:gosec // a remainder fits
	} else {
		l.next = (l.next + 1) % len(l.lanes)
	}
	select {
	case l.lanes[lane] <- work:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close waits until all work that was given is done.
func (l *Lanes) Close() {
	for _, lane := range l.lanes {
		close(lane)
	}
	l.wg.Wait()
}
