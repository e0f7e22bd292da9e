package pgstream

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// miscounted is how many rows are not found, once, by the pieces of unread though no cursor has
// passed them, or the other way round.
func (s *stage) miscounted() (wrong int) {
	s.Helper()
	err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(s.Context(), `SET LOCAL jit = off`); err != nil {
			return err
		}
		return tx.QueryRow(s.Context(), `SELECT count(*) FROM (
			SELECT c.shard, e.seq, count(*) FROM outbox_shards AS c CROSS JOIN LATERAL `+(Stream{}).names(streamsql.Unread)+` AS e GROUP BY c.shard, e.seq
		) AS pieces FULL JOIN (
			SELECT c.shard, e.seq, 1::bigint AS count FROM outbox_shards AS c JOIN outbox_stream AS e ON e.shard = c.shard AND NOT `+streamsql.Behind+`
		) AS whole USING (shard, seq, count) WHERE pieces IS NULL OR whole IS NULL`).Scan(&wrong)
	})
	if err != nil {
		s.Fatal(err)
	}
	return wrong
}

// TestUnreadBesideTheSnapshot has an event that its window's snapshot does not see, though its seq
// was drawn before the window's end was read: that happens between the two, and TestModel, which
// does one thing after the other, has none.
func TestUnreadBesideTheSnapshot(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.emit("a")
	store := s.open(Config{})
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 1 {
		t.Fatalf("%d events claimed: %v", len(batch.Messages()), err)
	}
	s.emit("b", "c")
	s.exec(`UPDATE outbox_shards SET hi = m, pos = m - 1 FROM (SELECT max(seq) AS m FROM outbox_stream) AS last`)
	if wrong := s.miscounted(); wrong > 0 {
		t.Errorf("%d rows are unread by one way of counting only", wrong)
	}
	batch.Abandon()
}

// TestIdle tells what a drain waits for: whatever is unread, and an event that failed until it was tried again, but none
// that is only for later.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	idle := func(want bool, when string) {
		t.Helper()
		if got, err := store.Idle(t.Context()); err != nil || got != want {
			t.Errorf("%s: idle is %t, want %t: %v", when, got, want, err)
		}
	}
	idle(true, "with nothing emitted")
	s.emit("k")
	idle(false, "with an unread event")
	batch := s.claimAll(store, 1) // the window closes with it
	idle(false, "while an event is published")
	s.settle(batch, failedFor(time.Hour))
	idle(false, "while an event waits for its next attempt")
	s.ripen()
	idle(false, "with a retry that is due")
	s.drainParked(store)
	idle(true, "with everything delivered")
	s.judge("")
	s.exec(`INSERT INTO outbox_stream (shard, id, topic, type, payload, not_before) VALUES (0, gen_random_uuid(), 'orders', 'made', '{}', now() + interval '1 hour')`)
	s.drainParked(store)
	idle(true, "with an event for later")
}
