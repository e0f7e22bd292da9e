package outbox

import (
	"sync"
	"time"
)

const (
	restFirst = 250 * time.Millisecond
	restMax   = 10 * time.Second
)

// rest is the pause of the whole loop after rounds with failures, for stores whose rows
// have no due time. It doubles with every such round and ends with a clean one.
type rest struct {
	mu     sync.Mutex
	rounds int
	until  time.Time
}

// after notes how a round went.
func (r *rest) after(failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !failed {
		r.rounds = 0
		return
	}
	delay := min(restFirst<<min(r.rounds, 10), restMax)
	r.rounds++
	r.until = time.Now().Add(jitter(delay))
}

// left is how long to wait before the next claim.
func (r *rest) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.until)
}
