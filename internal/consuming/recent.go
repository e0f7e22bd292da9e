package consuming

import "sync"

// Recent counts by key, and forgets keys that were not counted lately. It has two halves: when the younger one is
// full, the older one is dropped. It is safe for concurrent use.
type Recent[K comparable] struct {
	half       int
	mu         sync.Mutex
	young, old map[K]int
}

// NewRecent returns a Recent that remembers at least so many keys, and at most twice as many.
func NewRecent[K comparable](keys int) *Recent[K] {
	return &Recent[K]{half: keys, young: make(map[K]int)}
}

// Count returns how often a key was added, as far as that is remembered.
func (r *Recent[K]) Count(key K) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.young[key] + r.old[key]
}

// Add counts a key once more.
func (r *Recent[K]) Add(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.young) >= r.half {
		r.young, r.old = make(map[K]int), r.young
	}
	r.young[key] += r.old[key] + 1
	delete(r.old, key)
}

// Forget drops a key.
func (r *Recent[K]) Forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.young, key)
	delete(r.old, key)
}
