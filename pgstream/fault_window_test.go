package pgstream

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// sequenceNow is the sequence's value, as statements read it.
const sequenceNow = `coalesce(pg_sequence_last_value('"outbox_stream_seq"'::regclass), 0)`

// TestFaultsOfWindows are mistakes in how a window's two ends are taken.
func TestFaultsOfWindows(t *testing.T) {
	t.Parallel()
	testFaults(t,
		fault{
			name: "the sequence read together with the snapshot", shows: lost,
			put: func(s *stage, sql *statements) { s.swapAll(sql.openers(), "q2 = c.hi", "q2 = q.v") },
			script: func(s *stage) {
				store := s.open(Config{})
				s.emit("a")
				s.drain(store)
				scriptUnlisted(s, store, func() {})
			},
		},
		fault{
			name: "the sequence and the snapshot in one transaction", shows: lost,
			script: func(s *stage) {
				store := s.open(Config{})
				s.idle(store)
				scriptUnlisted(s, store, func() {
					if s.faulty {
						s.openAtOnce(store)
					}
				})
			},
		},
		fault{
			name: "the sequence read after the statement has its xid", shows: lost,
			put: func(s *stage, sql *statements) {
				// A statement that waited for the row computes its SET again, by then with an xid.
				s.swap(&sql.refresh, "SET hi = q.v", "SET hi = "+sequenceNow)
			},
			script: scriptAfterXID,
		},
		fault{
			name: "the window's end taken again in its middle", shows: lost,
			put: func(s *stage, sql *statements) {
				s.swap(&sql.take, "SET owner = $2", "SET owner = $2, s2 = CASE WHEN c.s2 IS NOT NULL THEN pg_current_snapshot() END")
			},
			script: scriptRetaken,
		},
		fault{
			name: "events in the order of their xids", shows: inverted,
			put: func(s *stage, sql *statements) {
				s.swap(&sql.main, "ORDER BY e.seq", "ORDER BY e.xid, e.seq")
				s.swapAll(sql.openers(), "ORDER BY e.seq\n  FETCH", "ORDER BY e.xid, e.seq\n  FETCH")
			},
			script: scriptOlderXIDLater,
		},
		fault{
			name: "a first page that passes by the late part", shows: lost,
			put: func(s *stage, sql *statements) {
				s.swap(&sql.open, "pg_visible_in_snapshot(x, c.s2)) AS punctual", "false) AS punctual")
			},
			script: scriptLate,
		},
		fault{
			name: "the snapshot's end taken for the xid of who read the sequence", shows: lost,
			put: func(s *stage, sql *statements) {
				s.swapAll(sql.openers(), "pg_current_xact_id() AS xid", "pg_snapshot_xmax(c.s2) AS xid")
			},
			script: scriptLateAndYoung,
		},
		fault{name: "an xid kept for a sequence that was read again", shows: lost, script: scriptRefreshed},
	)
}

// scriptUnlisted is a transaction that has inserted, and is so young that the snapshot of the
// next window neither sees nor lists it: no younger one has completed.
func scriptUnlisted(s *stage, store *Store, before func()) {
	// The last window was opened so long ago that the next one is, empty or not.
	s.exec(`UPDATE outbox_shards SET opened_at = NULL`)
	young := s.begin().insert("b")
	before()
	s.deliver(s.tryClaim(store, 10))
	young.commit()
	s.drain(store)
}

// scriptLate is a transaction that runs when a window ends, and has ended when the next is opened.
func scriptLate(s *stage) {
	store := s.open(Config{})
	s.idle(store)
	slow := s.begin().insert("a")
	s.emit("b") // completes later, so that snapshots list the other
	s.drain(store)
	slow.commit()
	s.emit("c")
	s.drain(store)
}

// scriptLateAndYoung is a late transaction that was the youngest when the sequence was read with
// its seq: the snapshot taken then ends below its xid.
func scriptLateAndYoung(s *stage) {
	store := s.open(Config{})
	s.emit("a")
	s.drain(store) // from now on a window is opened by one statement
	before := s.begin().insert("a")
	late := s.begin().insert("b")
	before.commit()
	s.drain(store) // reads the sequence
	s.emit("c")
	s.drain(store) // ends with a snapshot that lists the late one
	late.commit()
	s.emit("d")
	s.drain(store)
}

// scriptRefreshed is a late transaction that is younger than the last window, and has drawn its
// seq when the cursor is refreshed.
func scriptRefreshed(s *stage) {
	store := s.open(Config{})
	s.idle(store)
	s.emit("a")
	s.drain(store)
	store.mu.Lock()
	shard := store.shards[0]
	before := shard.cursor.hixid
	shard.wide = true // a refresh comes first
	store.mu.Unlock()
	late := s.begin().insert("b")
	s.emit("c")
	batch := s.claim(store, 1)
	if s.faulty {
		store.mu.Lock()
		shard.cursor.q2xid = before
		store.mu.Unlock()
	}
	s.deliver(batch)
	late.commit()
	s.emit("d")
	s.drain(store)
}

// TestPunctual has transactions that run when a window ends, and cannot be late: they began after
// the sequence was read. The next window is opened without a look at what may be late.
func TestPunctual(t *testing.T) {
	t.Parallel()
	s := quietStage(t)
	store := s.open(Config{})
	s.idle(store)
	s.emit("a")
	s.drain(store)
	running := s.begin().insert("b")
	s.emit("c")
	s.drain(store)
	if cursor := store.shards[0].cursor; !hasRunning(cursor.s1) || cursor.mayBeLate() {
		t.Errorf("the cursor is %+v: a transaction that is not late was to run at its end", cursor)
	}
	s.swap(&store.sql.open, "WITH q", "not to be used: WITH q")
	running.commit()
	s.drain(store)
	s.judge("")
}

// openAtOnce refreshes the cursor and opens a window in one transaction: the first statement
// has not ended when the second takes its snapshot.
func (s *stage) openAtOnce(store *Store) {
	s.Helper()
	store.reading <- struct{}{}
	defer store.doneReading()
	numbers, fences := store.owned()
	err := pgx.BeginFunc(s.Context(), store.reader.conn, func(tx pgx.Tx) error {
		if tag, err := tx.Exec(s.Context(), store.sql.refresh, DefaultSubscription, numbers, fences); err != nil || tag.RowsAffected() != 1 {
			return fmt.Errorf("%s: %w", tag, err)
		}
		if tag, err := tx.Exec(s.Context(), store.sql.open, DefaultSubscription, numbers, fences, 0, nil); err != nil || tag.RowsAffected() != 1 {
			return fmt.Errorf("%s: %w", tag, err)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	store.forget()
}

// scriptAfterXID holds the cursor's row, as a renewal does, while it is refreshed. The
// statement has its xid then. A younger transaction inserts meanwhile: no snapshot until the
// next commit lists it, so that its seq must not be below what was read.
func scriptAfterXID(s *stage) {
	store := s.open(Config{})
	s.idle(store)
	s.emit("a")
	renewal := s.begin()
	if _, err := renewal.tx.Exec(s.Context(), `UPDATE outbox_shards SET locked_until = locked_until + interval '1 s'`); err != nil {
		s.Fatal(err)
	}
	claimed := make(chan outbox.Batch)
	go func() {
		defer close(claimed)
		claimed <- s.tryClaim(store, 10)
	}()
	pgtest.AwaitBlocked(s, s.pool, 1)
	young := s.begin().insert("b")
	renewal.commit()
	s.deliver(<-claimed)
	young.commit()
	s.drain(store)
}

// scriptRetaken has a relay die in the middle of a window, behind an event that commits only
// then.
func scriptRetaken(s *stage) {
	store := s.open(Config{})
	s.idle(store)
	slow := s.begin().insert("slow")
	s.emit("a", "b")
	s.deliver(s.claim(store, 1))
	slow.commit()
	s.drain(s.takeOver())
}

// scriptOlderXIDLater are two producers that serialise on a row of their own: the one with
// the older xid waits for the younger one, and commits after it.
func scriptOlderXIDLater(s *stage) {
	s.exec(`CREATE TABLE account (id int PRIMARY KEY, n int); INSERT INTO account VALUES (1, 0)`)
	store := s.open(Config{})
	older, younger := s.begin(), s.begin()
	if _, err := older.tx.Exec(s.Context(), `SELECT pg_current_xact_id()`); err != nil {
		s.Fatal(err)
	}
	for _, p := range []*producer{younger, older} {
		if _, err := p.tx.Exec(s.Context(), `UPDATE account SET n = n + 1 WHERE id = 1`); err != nil {
			s.Fatal(err)
		}
		p.insert("account-1").commit()
	}
	s.drain(store)
}

// TestLatePages has more late events than a page holds.
func TestLatePages(t *testing.T) {
	t.Parallel()
	s := quietStage(t)
	store := s.open(Config{})
	s.idle(store)
	slow := s.begin().insert(repeat("a", 7)...)
	s.emit("b") // completes later, so that snapshots list the other
	s.drain(store)
	slow.commit()
	s.emit("c")
	s.deliver(s.claim(store, 3))
	if part := s.lastPart(); part != partLate {
		t.Fatalf("a page of the %s part was settled, want one of the late part", part)
	}
	s.drain(s.takeOver()) // by the position in the table
	s.judge("")
}

// lastPart is the part of a window that the last settled page was of.
func (s *stage) lastPart() (part string) {
	s.Helper()
	s.scan(`SELECT part FROM outbox_deliveries ORDER BY settled_at DESC LIMIT 1`, &part)
	return part
}
