package outbox

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	restFirst = 250 * time.Millisecond
	restMax   = 10 * time.Second
	// maxPassedOver bounds the events that are passed over at once; with more of them the whole
	// loop pauses.
	maxPassedOver = 1000
)

// rest is the pause of the whole loop after rounds that must not be repeated at once. It doubles
// with every such round and ends with a good one.
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

// passedOver are events that wait although their rows do not say so: those that failed, on a store
// whose rows have no due time, and those that were in a trial that failed. Claims leave them out until
// their time is over. Another relay, or this one after a restart, may try them sooner.
type passedOver struct {
	mu    sync.Mutex
	until map[uuid.UUID]time.Time
}

// add passes an event over for a time. It reports false if there are too many.
func (p *passedOver) add(id uuid.UUID, delay time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = make(map[uuid.UUID]time.Time)
	}
	if _, known := p.until[id]; !known && len(p.until) >= maxPassedOver {
		return false
	}
	p.until[id] = time.Now().Add(delay)
	return true
}

// list are the events to leave out now, in order.
func (p *passedOver) list() []uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.until) == 0 {
		return nil
	}
	now := time.Now()
	list := make([]uuid.UUID, 0, len(p.until))
	for id, until := range p.until {
		if now.Before(until) {
			list = append(list, id)
		} else {
			delete(p.until, id)
		}
	}
	slices.SortFunc(list, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return list
}

// left is how long until the first of them may be tried again, and at most limit.
func (p *passedOver) left(limit time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, until := range p.until {
		limit = min(limit, max(time.Until(until), 0))
	}
	return limit
}

// backOff sees to it that an event that failed is not claimed again at once where it has no due
// time of its own: its attempts would be gone in a second. Nor are events of which the publisher
// has tried none.
func (r *Relay) backOff(a *attempt, outcomes []Outcome) {
	traits := r.config.Store.Traits()
	crowded, refused := false, false
	for i := range outcomes {
		switch o := &outcomes[i]; {
		case o.Kind == Failed && !traits.Backoff, o.Kind == Released && o.Delay > 0 && !traits.InOrder:
			crowded = !r.passedOver.add(a.messages[i].ID, o.Delay) || crowded
		case o.Kind == Released && a.sent(i) && isOneOf(a.errs[i], ErrNotAttempted):
			refused = true
		}
	}
	settled := slices.ContainsFunc(outcomes, func(o Outcome) bool { return !o.given() })
	r.rest.after(crowded || refused && !settled && !r.routes.isClosed())
}
