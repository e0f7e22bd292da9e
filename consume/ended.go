package consume

import (
	"sync"

	"github.com/google/uuid"
)

// rememberEnded is of how many events it is known, at least, that a delivery has come to an end here.
const rememberEnded = 10_000

// ended are the events of which a delivery came to an end in this process, and which come again. Whatever keeps
// them from being handled, it is not that they end their consumer. They are in two halves; when the younger one is full
// the older one is forgotten.
type ended struct {
	mu         sync.Mutex
	young, old map[uuid.UUID]struct{}
}

func (e *ended) has(event uuid.UUID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, young := e.young[event]
	_, old := e.old[event]
	return young || old
}

func (e *ended) add(event uuid.UUID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.young == nil || len(e.young) == rememberEnded {
		e.young, e.old = make(map[uuid.UUID]struct{}), e.young
	}
	e.young[event] = struct{}{}
}

func (e *ended) forget(event uuid.UUID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.young, event)
	delete(e.old, event)
}
