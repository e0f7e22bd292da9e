package gcppubsub

import (
	"sync"
	"time"
)

const (
	// remembered is of how many messages that failed it is known how often, and how many keys
	// are held.
	remembered = 10_000
	// holdFor is how long a key waits for its message that failed. That may go to another
	// consumer, and the key is not heard of here.
	holdFor = time.Minute
)

// attempts counts the failures of messages where the service does not. It is in two halves; when
// the younger one is full the older one is forgotten.
type attempts struct {
	limit      int
	mu         sync.Mutex
	young, old map[string]int
}

func newAttempts(limit int) *attempts { return &attempts{limit: limit, young: make(map[string]int)} }

// next is the number of the delivery of a message.
func (a *attempts) next(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.young[id] + a.old[id] + 1
}

func (a *attempts) failed(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.young) >= a.limit/2 {
		a.young, a.old = make(map[string]int), a.young
	}
	a.young[id] += a.old[id] + 1
	delete(a.old, id)
}

func (a *attempts) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.young, id)
	delete(a.old, id)
}

// holds keep the order of a key after a failure. The service delivers the message that failed
// and all later ones of its key again, but some of these were delivered before, and wait in the
// client. They are given back until the one that failed has come.
type holds struct {
	limit int
	mu    sync.Mutex
	keys  map[string]hold
}

type hold struct {
	id    string // of the message that failed
	until time.Time
}

func newHolds(limit int) *holds { return &holds{limit: limit, keys: make(map[string]hold)} }

// refuse reports whether a message has to wait for another one of its key.
func (h *holds) refuse(key, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held, found := h.keys[key]
	if found && time.Now().After(held.until) {
		delete(h.keys, key)
		return false
	}
	return found && held.id != id
}

// hold has a key wait for its message that failed. When too many wait, it does not.
func (h *holds) hold(key, id string) {
	if key == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.keys) >= h.limit {
		for other, held := range h.keys {
			if time.Now().After(held.until) {
				delete(h.keys, other)
			}
		}
		if len(h.keys) >= h.limit {
			return
		}
	}
	h.keys[key] = hold{id, time.Now().Add(holdFor)}
}

// release ends the hold of a key, if it waits for this message.
func (h *holds) release(key, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys[key].id == id {
		delete(h.keys, key)
	}
}
