package pgstream

import (
	"time"

	"github.com/google/uuid"
)

// PassTime makes the store do at the next claim what it does every few seconds.
func (s *Store) PassTime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tendAt, s.lookAt, s.rotateAt = time.Time{}, time.Time{}, time.Time{}
}

// HoldReads waits until the store reads nothing, and has it read nothing until release is called.
func (s *Store) HoldReads() (release func()) {
	s.reading <- struct{}{}
	return func() { <-s.reading }
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
