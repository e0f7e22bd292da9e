package outbox

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	pingFirst = 250 * time.Millisecond
	pingMax   = 10 * time.Second
	// poisonBreaks is how often running one event has to be the one at which the
	// connection breaks before it is suspected rather than the broker.
	poisonBreaks = 3
	// maxSuspects bounds what is remembered of such events.
	maxSuspects = 1000
)

// breaker keeps the relay from claiming while the broker is away.
type breaker struct {
	mu sync.Mutex
	// open is set while the broker is thought to be away.
	open bool
	// trial is set where there is no Pinger: the next batch is to find out, and so is small.
	trial bool
	// trials counts those that have failed since a message was acknowledged.
	trials int

	// breaks counts, for each event at which the connection broke and that has not been
	// delivered since, how often it did.
	breaks map[uuid.UUID]int
}

func newBreaker() *breaker {
	return &breaker{breaks: make(map[uuid.UUID]int)}
}

// isOpen reports whether the broker is thought to be away.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// trip opens the breaker; it reports false if it was open already.
func (b *breaker) trip() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		return false
	}
	b.open = true
	if b.trial {
		b.trials++
	}
	return true
}

// waits is how many pauses there have been without a sign of the broker: the next is longer.
func (b *breaker) waits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trials
}

// reset closes the breaker. With trial, the next messages are to find out whether it holds.
func (b *breaker) reset(trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	b.trial = trial
}

// trialSize is two, so that a single event at which the connection breaks does not pass for
// a broker that is away: the other one arrives.
const trialSize = 2

// size is how many events to claim: all that are wanted, or few for a trial.
func (b *breaker) size(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trial {
		return min(trialSize, n)
	}
	return n
}

// broke notes the event at which the connection broke. It reports true the third time
// running: the event may be what breaks it. A trial of which nothing was acknowledged says
// nothing about the event: nobody knows whether the broker is there.
func (b *breaker) broke(id uuid.UUID, acknowledged bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trial && !acknowledged {
		return false
	}
	if len(b.breaks) >= maxSuspects {
		clear(b.breaks) // a broker that breaks at so many events is itself at fault
	}
	b.breaks[id]++
	if b.breaks[id] < poisonBreaks {
		return false
	}
	delete(b.breaks, id)
	return true
}

// passed notes that messages were acknowledged: the broker is there, and these are not to
// blame for its absence.
func (b *breaker) passed(messages []Message, outcomes []Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range outcomes {
		if outcomes[i].Kind == Delivered {
			b.trial, b.trials = false, 0
			if len(b.breaks) > 0 {
				delete(b.breaks, messages[i].ID)
			}
		}
	}
}

// pingDelay is the time before the n-th ping, from 0, with jitter.
func pingDelay(n int) time.Duration {
	return jitter(min(pingFirst<<min(n, 10), pingMax))
}
