package pgstore

import (
	"time"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// ScansAreQuick makes the store claim as it does where a scan of what is due is quick, even
// where a busy machine makes it slow: a claim then takes everything that is due.
func (s *Store) ScansAreQuick() *Store {
	s.slowScan = time.Hour
	return s
}

// PassTime lets time pass for what the store measures by itself.
func (s *Store) PassTime(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiredAt, s.farAt = s.expiredAt.Add(-by), s.farAt.Add(-by)
	for id, w := range s.far {
		w.since = w.since.Add(-by)
		s.far[id] = w
	}
}

// Locks is whether a claim of a layout only locks its rows.
func Locks(l layouts.Layout) bool { return (&tablesql.Layout{Layout: l}).Locks() }

// LookTook makes the store believe that it has just looked for expired leases, and how long it took.
func (s *Store) LookTook(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiredAt, s.expiredTook = time.Now(), took
}
