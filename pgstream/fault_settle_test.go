package pgstream

import "testing"

// TestFaultsOfSettling are settles that do not look whether the cursor is where they last saw
// it.
func TestFaultsOfSettling(t *testing.T) {
	t.Parallel()
	const fence, pos, s2 = " AND c.fence = u.fence", " AND c.pos = u.pos", " AND c.s2::text = u.s2"
	without := func(conditions ...string) func(s *stage, sql *statements) {
		return func(s *stage, sql *statements) {
			for _, statement := range []*string{&sql.settle, &sql.settlePark} {
				for _, condition := range conditions {
					s.swap(statement, condition, "")
				}
			}
		}
	}
	testFaults(t,
		fault{name: "without the fence", shows: repeated, put: without(fence), script: scriptStaleOwner},
		fault{name: "without the position", shows: repeated, put: without(pos), script: scriptSettledTwice},
		fault{name: "without the window", shows: lost, put: without(s2), script: scriptNextWindow},
		fault{name: "without any of them", shows: lost, put: without(fence, pos, s2), script: scriptStaleClose},
	)
}

// scriptStaleOwner is a relay that failed to publish and was stopped before it could say so.
// The event's new owner has published it by then.
func scriptStaleOwner(s *stage) {
	stale := s.open(Config{})
	s.emit("a")
	old := s.claim(stale, 1)
	owner := s.takeOver()
	batch := s.claim(owner, 1)
	s.publish(batch)
	s.settle(old, failedNow)
	s.settle(batch)
	s.drainParked(owner)
}

// scriptSettledTwice is a settle whose answer was lost, and that is tried again only after
// the next page has been settled.
func scriptSettledTwice(s *stage) {
	store := s.open(Config{})
	s.emit("a", "b", "c")
	first := s.claim(store, 1)
	s.deliver(first)
	s.deliver(s.claim(store, 1))
	s.settle(first)
	s.drain(s.takeOver())
}

// scriptNextWindow is a settle whose answer was lost, and that is tried again only in the
// next window: it begins at the same position. Its first page is never published, because
// the relay dies.
func scriptNextWindow(s *stage) {
	store := s.open(Config{})
	s.idle(store)
	s.emit("a")
	first := s.claimAll(store, 1)
	s.deliver(first)
	s.emit("b")
	s.claimAll(store, 1)
	s.settle(first)
	s.drain(s.takeOver())
}

// scriptStaleClose is a relay that was stopped when it had published its last page. Its
// shard's new owner is in a later window by then.
func scriptStaleClose(s *stage) {
	stale := s.open(Config{})
	s.emit("a")
	old := s.claimAll(stale, 1)
	owner := s.takeOver()
	s.drain(owner)
	s.emit("b", "c")
	s.deliver(s.claim(owner, 1))
	s.settle(old)
	s.drain(s.takeOver())
}
