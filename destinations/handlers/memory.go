package handlers

import (
	"container/list"
	"errors"
	"maps"
	"sync"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// memory remembers the calls of each handler for unfinished events. It belongs to this process: another one that
// takes over an event calls all of its handlers.
type memory struct {
	mu         sync.Mutex
	limit      int // of events
	maxOverdue int // of calls of one handler
	events     map[uuid.UUID]*event
	order      *list.List // of ids, the oldest first
}

// event is what is known of one event.
type event struct {
	calls   map[string]*call // by handler
	running int
	place   *list.Element
}

// call is one handler's call: running, or ended for good.
type call struct {
	running bool
	overdue bool
	dead    error // nil if it succeeded
}

func newMemory(limit, maxOverdue int) *memory {
	return &memory{limit: limit, maxOverdue: maxOverdue, events: make(map[uuid.UUID]*event), order: list.New()}
}

// begin records that a handler is called. If it must not be, ended is true and err is its result.
func (m *memory) begin(id uuid.UUID, h *handler) (ended bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[id]
	if e != nil && e.calls[h.name] != nil {
		if known := e.calls[h.name]; !known.running {
			return true, known.dead
		}
		return true, errBusy
	}
	// Calls that never end would otherwise pile up, one for every event.
	if h.overdue >= m.maxOverdue {
		return true, ErrOverdue
	}
	if e == nil {
		e = &event{calls: make(map[string]*call, 1), place: m.order.PushBack(id)}
		m.events[id] = e
	}
	e.calls[h.name] = &call{running: true}
	e.running++
	m.trim()
	return false, nil
}

// end records the result of a call. A call that may succeed another time is forgotten.
func (m *memory) end(id uuid.UUID, h *handler, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[id] // it exists: running calls are not forgotten
	known := e.calls[h.name]
	e.running--
	if known.overdue {
		h.overdue--
	}
	*known = call{dead: err}
	var dead *outbox.TerminalError
	if err != nil && !errors.As(err, &dead) {
		delete(e.calls, h.name)
		m.dropIfEmpty(id, e)
	}
}

// leave records that nobody waits for a call any more. It returns false if the call has ended.
func (m *memory) leave(id uuid.UUID, h *handler) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[id]
	if e == nil || e.calls[h.name] == nil || !e.calls[h.name].running {
		return false
	}
	e.calls[h.name].overdue = true
	h.overdue++
	return true
}

// forget drops an event that all handlers are done with.
func (m *memory) forget(id uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.events[id]; e != nil && e.running == 0 {
		m.drop(id, e)
	}
}

// revive lets the handlers that gave up an event have it again, if a person retries it. The others stay done.
func (m *memory) revive(id uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[id]
	if e == nil {
		return
	}
	maps.DeleteFunc(e.calls, func(_ string, known *call) bool { return known.dead != nil })
	m.dropIfEmpty(id, e)
}

func (m *memory) dropIfEmpty(id uuid.UUID, e *event) {
	if len(e.calls) == 0 {
		m.drop(id, e)
	}
}

func (m *memory) drop(id uuid.UUID, e *event) {
	m.order.Remove(e.place)
	delete(m.events, id)
}

// trim drops the oldest events above the limit, but none that is being handled.
func (m *memory) trim() {
	for place := m.order.Front(); place != nil && len(m.events) > m.limit; {
		id, _ := place.Value.(uuid.UUID)
		place = place.Next()
		if e := m.events[id]; e.running == 0 {
			m.drop(id, e)
		}
	}
}
