package pgstream

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestFaultsOfRotation are slots that are emptied too early.
func TestFaultsOfRotation(t *testing.T) {
	t.Parallel()
	testFaults(t,
		fault{
			name: "the check before the lock", shows: lost,
			// TRUNCATE takes the lock by itself, only later.
			put:    func(s *stage, sql *statements) { s.swap(&sql.lockSlot, lockSlotSQL, `SET LOCAL lock_timeout = 0`) },
			script: scriptCommitsAfterCheck,
		},
		fault{
			name: "the check by the highest seq", shows: lost,
			put: func(s *stage, sql *statements) {
				s.swap(&sql.unread, "e.xid >= pg_snapshot_xmax(c.s1)", "e.seq > c.q1")
				s.swap(&sql.unread, "ON e.xid = x", "ON false")
			},
			script: scriptCommitsBehind,
		},
	)
}

// oldSlot is a slot that is neither written nor emptied by itself.
func (s *stage) oldSlot() *int {
	s.Helper()
	var slot int
	s.scan(`SELECT (floor(extract(epoch FROM now()) / slot_seconds)::bigint + slots / 2) % slots FROM outbox_settings`, &slot)
	return &slot
}

// drainLater drains when the cursors' windows have grown old: nobody looks for new events in an
// old slot before.
func (s *stage) drainLater(store *Store) {
	s.Helper()
	s.exec(`UPDATE outbox_shards SET opened_at = now() - interval '11 s'`)
	s.drain(store)
}

// empty empties a slot and fails if that is an error.
func (s *stage) empty(store *Store, slot int) (behind []string) {
	s.Helper()
	behind, err := store.empty(s.Context(), slot, rotation{})
	if err != nil {
		s.Fatal(err)
	}
	return behind
}

// scriptCommitsAfterCheck is a transaction that has been open since the slot's last turn, and
// commits while the slot is about to be emptied.
func scriptCommitsAfterCheck(s *stage) {
	slot := s.oldSlot()
	store := s.open(Config{})
	s.begin().insertInto(slot, "a", nil).commit()
	s.drainLater(store)
	slow := s.begin().insertInto(slot, "b", nil)
	committed, emptied := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(emptied)
		// A lock that is not to be had in time is given up, on a busy machine before anybody saw the wait for it.
		for waiting := true; waiting; {
			s.empty(store, *slot)
			select {
			case <-committed:
				waiting = false
			default:
			}
		}
	}()
	pgtest.AwaitBlocked(s, s.pool, 1)
	slow.commit()
	close(committed)
	<-emptied
	s.drainLater(store)
}

// scriptCommitsBehind is a transaction whose seq the cursor has passed when it commits.
func scriptCommitsBehind(s *stage) {
	slot := s.oldSlot()
	store := s.open(Config{})
	s.idle(store)
	slow := s.begin().insertInto(slot, "a", nil)
	s.begin().insertInto(slot, "b", nil).commit()
	s.drainLater(store)
	slow.commit()
	s.empty(store, *slot)
	s.drainLater(store)
}

// TestEventsOfOldSlots has a transaction commit that began slots ago: what it wrote is late by
// some seconds, and a relay that drains waits for it.
func TestEventsOfOldSlots(t *testing.T) {
	t.Parallel()
	s := newStage(t, pgtest.URL(t), Shape{Shards: 1})
	store := s.open(Config{})
	s.idle(store)
	s.begin().insertInto(s.oldSlot(), "a", nil).commit()
	if idle, err := store.Idle(t.Context()); idle || err != nil {
		t.Fatalf("with an event to come the store says that it is idle: %t, %v", idle, err)
	}
	s.drainLater(store)
	s.judge(lost)
}
