package pgstream

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestFaultsOfTakeovers are cursors that come from memory and not from the table.
func TestFaultsOfTakeovers(t *testing.T) {
	t.Parallel()
	testFaults(t, fault{name: "a snapshot from memory on a shard that was taken over", shows: repeated, script: scriptOldPair})
}

// scriptOldPair is a relay that has read the sequence and a snapshot while another one had
// the shard, and opens its first window with them.
func scriptOldPair(s *stage) {
	var q int64
	var snapshot string
	s.scan(`SELECT `+sequenceNow+`, pg_current_snapshot()::text`, &q, &snapshot)
	s.emit("a")
	s.drain(s.open(Config{}))
	s.emit("b")
	store := s.takeOver()
	if s.faulty {
		right := *store.sql
		s.swapAll(store.sql.openers(), "q2 = c.hi", fmt.Sprintf("q2 = %d", q))
		s.swapAll(store.sql.openers(), "s2 = pg_current_snapshot()", fmt.Sprintf("s2 = '%s'", snapshot))
		store.reading <- struct{}{}
		_, err := store.step(s.Context(), 10)
		<-store.reading
		if err != nil {
			s.Fatal(err)
		}
		*store.sql = right
	}
	s.drain(store)
}

// TestFaultOfMemoryAfterCrash crashes a server that had not written its last commits: their
// xids and seqs are given out again. A store that kept its cursor in memory takes new events
// for old ones.
func TestFaultOfMemoryAfterCrash(t *testing.T) {
	t.Parallel()
	for _, faulty := range []bool{false, true} {
		t.Run(map[bool]string{false: "right", true: "fault put back"}[faulty], func(t *testing.T) {
			t.Parallel()
			// Nothing is written unless somebody waits for it.
			server := pgtest.Server(t, map[string]string{"wal_writer_delay": "10s", "autovacuum": "off"})
			s := newStage(t, server.URL("postgres"), Shape{Shards: 1})
			s.faulty = faulty
			store := s.open(Config{})
			s.idle(store)
			// What follows fits into the first page: the pages before the last are written by themselves.
			s.exec(`SELECT pg_switch_wal()`)
			s.exec(`CHECKPOINT`)
			forgotten := s.emit("a", "b", "c")
			s.drain(store)
			if err := server.Restart(t.Context(), pgserver.Immediate); err != nil {
				t.Fatal(err)
			}
			s.pool.Reset()
			s.wantGone(forgotten)
			s.committed, s.published = nil, nil
			// More than a page: the first comes with the window, by the cursor as the table has it.
			s.emit(repeat("d", 15)...)
			if faulty {
				s.reconnectWithMemory(store)
			} else {
				s.claimThroughErrors(store)
			}
			s.drain(store)
			s.judge(lost)
		})
	}
}

// claimThroughErrors claims, as a relay does, until the store has connections again, and
// delivers. Every connection it had is good for one error.
func (s *stage) claimThroughErrors(store *Store) {
	s.Helper()
	for errs := 0; ; errs++ {
		batch, err := store.Claim(s.Context(), outbox.ClaimRequest{Limit: 10})
		switch {
		case err == nil && errs == 0:
			s.Fatal("the store did not notice the fault")
		case err == nil:
			s.deliver(batch)
			return
		case errs > store.config.Connections:
			s.Fatal(err)
		}
	}
}

// wantGone fails unless the crash took these events along.
func (s *stage) wantGone(ids []uuid.UUID) {
	s.Helper()
	var left int
	if err := s.pool.QueryRow(s.Context(), `SELECT count(*) FROM outbox_stream WHERE id = ANY($1)`, ids).Scan(&left); err != nil {
		s.Fatal(err)
	}
	if left > 0 {
		s.Fatalf("%d of %d events survived the crash; the script needs them gone", left, len(ids))
	}
}

// reconnectWithMemory is a store that reconnects and forgets nothing.
func (s *stage) reconnectWithMemory(store *Store) {
	s.Helper()
	store.reading <- struct{}{}
	defer func() { <-store.reading }()
	memory := make(map[int16]shard)
	for number, sh := range store.shards {
		memory[number] = *sh
	}
	store.disconnect()
	store.own.Distrust(context.DeadlineExceeded)
	if err := store.connect(s.Context()); err != nil {
		s.Fatal(err)
	}
	for number, sh := range memory {
		*store.shards[number] = sh
	}
}
