package pgstore

import "time"

// ScansAreQuick makes the store claim as it does where a scan of what is due is quick, even
// where a busy machine makes it slow: a claim then takes everything that is due.
func (s *Store) ScansAreQuick() *Store {
	s.slowScan = time.Hour
	return s
}

// Locks is whether a claim of a layout only locks its rows.
func Locks(l Layout) bool { return l.locks() }
