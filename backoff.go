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
	// maxPassedOver bounds how many events are passed over at once. With more of them the whole loop pauses.
	maxPassedOver = 1000
)

// rest is the pause of the whole claim loop after rounds that must not be repeated at once. It doubles with every
// such round; a good round resets it.
type rest struct {
	mu     sync.Mutex
	rounds int
	until  time.Time
}

// after records the result of a round.
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

// left returns how long to wait before the next claim.
func (r *rest) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.until)
}

// passedOver are events that must wait although their rows do not say so: events that failed on a store whose rows
// have no due time, and events of a failed trial. Claims leave them out until their time is up. Another relay, or
// this one after a restart, may try them sooner.
type passedOver struct {
	mu    sync.Mutex
	until map[uuid.UUID]time.Time
}

// add passes over an event for a time. It returns false if there are too many.
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

// list returns the events to leave out now, sorted.
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

// left returns the time until the first of them may be tried again, at most limit.
func (p *passedOver) left(limit time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, until := range p.until {
		limit = min(limit, max(time.Until(until), 0))
	}
	return limit
}

// backOff keeps a failed event from being claimed again at once if its row has no due time: it would use up its
// attempts within a second. It also pauses the loop if the publisher attempted nothing.
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
