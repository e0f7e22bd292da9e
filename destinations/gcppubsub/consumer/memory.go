package consumer

import (
	"maps"
	"sync"
	"time"
)

const (
	// remembered limits how many failed messages are counted, and how many keys are held.
	remembered = 10_000
	// holdFor is how long a key waits for its failed message. Another consumer may get that message, and this one
	// may not hear of the key for long.
	holdFor = time.Minute
)

// holds keep the order of a key after a failure. The service delivers the failed message and all later ones of its
// key again, but some of these are already in the client. They are given back until the failed one has come.
type holds struct {
	limit int
	mu    sync.Mutex
	keys  map[string]*hold
}

type hold struct {
	id      string // of the message that failed
	until   time.Time
	refused map[string]bool // the later messages that were given back
}

func newHolds(limit int) *holds { return &holds{limit: limit, keys: make(map[string]*hold)} }

// refuse reports whether a message must wait for another one of its key. It refuses a message once: if it comes
// again, it comes after the failed one, which another consumer then has.
func (h *holds) refuse(key, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.keys[key]
	switch {
	case held == nil || held.id == id:
		return false
	case held.refused[id] || time.Now().After(held.until):
		delete(h.keys, key)
		return false
	}
	held.refused[id] = true
	return true
}

// hold has a key wait for its message that failed. When too many wait, it does not.
func (h *holds) hold(key, id string) {
	if key == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.keys) >= h.limit {
		maps.DeleteFunc(h.keys, func(_ string, held *hold) bool { return time.Now().After(held.until) })
	}
	if len(h.keys) < h.limit {
		h.keys[key] = &hold{id, time.Now().Add(holdFor), make(map[string]bool)}
	}
}

// release ends the hold of a key, if it waits for this message.
func (h *holds) release(key, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.keys[key]; held != nil && held.id == id {
		delete(h.keys, key)
	}
}
