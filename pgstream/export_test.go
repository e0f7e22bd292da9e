package pgstream

import (
	"time"

	"github.com/google/uuid"
)

// AwaitReadAhead waits for what the store does while nobody waits for it.
func (s *Store) AwaitReadAhead() {
	s.reading <- struct{}{}
	s.doneReading()
}

// PassTime makes the store do at the next claim what it does every few seconds. What it still does
// of an earlier claim must not notice: a test could not tell which of them it was.
func (s *Store) PassTime() {
	s.AwaitReadAhead()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tendAt, s.lookAt, s.rotateAt, s.checkAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
}

// IsOut reports whether the store has handed an event out and not settled it.
func (s *Store) IsOut(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if !sh.out {
			continue
		}
		for i := range sh.pages[0].messages {
			if sh.pages[0].messages[i].ID == id {
				return true
			}
		}
	}
	return false
}

// owned are the numbers and fences of the shards.
func (s *Store) owned() (numbers []int16, fences []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fenced(s.sorted())
}
