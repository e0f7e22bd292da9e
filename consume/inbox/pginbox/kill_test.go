package pginbox_test

import (
	"os"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// TestKilled kills the consumers of two deliveries of an event at the same point. The third
// lives, and whatever the point was, there is one effect.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []string{inboxtest.BeforeBegin, inboxtest.AfterBegin, inboxtest.DuringEffect, inboxtest.AfterEffect, inboxtest.AfterFinish, inboxtest.BeforeAck} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				event := uuid.New()
				for range 2 {
					b.start(order{Door: name, StandAt: point}).DeliverAndKill(event)
				}
				done := 0
				if point == inboxtest.AfterFinish || point == inboxtest.BeforeAck {
					done = 1
				}
				b.want(event, done, done)
				b.start(order{Door: name}).DeliverAndKill(event)
				b.want(event, 1, 1)
				b.start(order{Door: name}).DeliverAndKill(event)
				b.want(event, 1, 1)
			})
		})
	}
}

// TestKilledAtRandom has a consumer killed over and over, wherever it is, while events are
// delivered to it again until it has acknowledged them all.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills := 10
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		kills = 200
	}
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		duplicates := 0
		events := inboxtest.KillAtRandom(t, kills, func() *inboxtest.Process { return b.start(order{Door: name}) }, func(again []uuid.UUID) {
			duplicates += b.count(`SELECT count(*) FROM outbox_inbox WHERE event_id = ANY($1)`, again)
		})
		for _, event := range events {
			b.want(event, 1, 1)
		}
		if n := b.count(`SELECT count(*) FROM effects`); n != 2*len(events) {
			t.Errorf("%d halves of effects for %d events", n, len(events))
		}
		t.Logf("%d kills; %d deliveries of events that were handled and not acknowledged", kills, duplicates)
	})
}

func (b *bench) count(sql string, args ...any) (n int) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), sql, args...).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// TestHangs has a consumer that hangs in the middle of its effect: the session's timeout ends
// its transaction, another handles the event, and the first one cannot commit any more.
func TestHangs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		event := uuid.New()
		hanging := b.start(order{
			URL: withSettings(b.url, "idle_in_transaction_session_timeout=200ms"), Door: name, StandAt: inboxtest.DuringEffect,
		})
		hanging.Deliver(event)
		hanging.Await(inboxtest.DuringEffect)
		b.deliver(b.door(name), event, true)
		hanging.GoOn()
		hanging.AwaitEnd(inboxtest.Nacked, event)
		b.want(event, 1, 1)
	})
}

// TestRace has 64 goroutines in each of four processes handle one event at once.
func TestRace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		const processes, goroutines = 4, 64
		event := uuid.New()
		// Nobody gets on before all are there: the table is locked meanwhile.
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := tx.Exec(t.Context(), `LOCK TABLE outbox_inbox`); err != nil {
			t.Fatal(err)
		}
		var consumers []*inboxtest.Process
		for range processes {
			c := b.start(order{URL: withSettings(b.url, "pool_max_conns=4"), Door: name, Races: goroutines})
			c.Deliver(event)
			consumers = append(consumers, c)
		}
		pgtest.AwaitBlocked(b.t, b.pool, 4*processes)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range consumers {
			c.AwaitEnd(inboxtest.Acked, event)
		}
		b.want(event, 1, 1)
	})
}

// TestConnectionEnded has the server end a connection before its commit.
func TestConnectionEnded(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	c := b.start(order{Door: "pgx", StandAt: inboxtest.AfterEffect})
	c.Deliver(event)
	c.Await(inboxtest.AfterEffect)
	pgtest.Exec(t, b.pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction'`)
	c.GoOn()
	c.AwaitEnd(inboxtest.Nacked, event)
	b.want(event, 0, 0)
	b.start(order{Door: "pgx"}).DeliverAndKill(event)
	b.want(event, 1, 1)
}
