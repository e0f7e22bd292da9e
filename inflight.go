package outbox

import (
	"sync"

	"github.com/google/uuid"
)

// inFlight are the events being published. It keeps an event whose lease ran out, and that the same relay claimed
// again, from being published twice at once.
type inFlight struct {
	mu  sync.Mutex
	ids map[uuid.UUID]struct{}
}

func newInFlight() *inFlight { return &inFlight{ids: make(map[uuid.UUID]struct{})} }

// add adds the ids that are not there yet and reports which ones were.
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

// remove removes what add added.
func (s *inFlight) remove(messages []Message, taken []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range messages {
		if !taken[i] {
			delete(s.ids, messages[i].ID)
		}
	}
}
