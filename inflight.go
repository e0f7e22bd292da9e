package outbox

import (
	"sync"

	"github.com/google/uuid"
)

// inFlight are the events being published, so that none is published twice at once even if
// its lease ran out and it was claimed again by the same relay.
type inFlight struct {
	mu  sync.Mutex
	ids map[uuid.UUID]struct{}
}

func newInFlight() *inFlight { return &inFlight{ids: make(map[uuid.UUID]struct{})} }

// add enters the ids that are not in yet and reports which were.
func (s *inFlight) add(messages []Message) (taken []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken = make([]bool, len(messages))
	for i := range messages {
		_, taken[i] = s.ids[messages[i].ID]
		if !taken[i] {
			s.ids[messages[i].ID] = struct{}{}
		}
	}
	return taken
}

// remove takes out what add entered.
func (s *inFlight) remove(messages []Message, taken []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range messages {
		if !taken[i] {
			delete(s.ids, messages[i].ID)
		}
	}
}
