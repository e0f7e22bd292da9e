package pginbox_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/pgtest"
)

// killAt kills a consumer at the point where it was told to stand still.
func (b *bench) killAt(o order, event uuid.UUID) {
	b.t.Helper()
	c := b.start(o)
	c.send(event.String())
	c.await(o.StandAt)
	c.kill()
}

// redeliver has a consumer take an event to its end.
func (b *bench) redeliver(o order, event uuid.UUID) {
	b.t.Helper()
	c := b.start(o)
	c.send(event.String())
	c.await(acked + " " + event.String())
	c.kill()
}

// TestKilled kills the consumers of two deliveries of an event at the same point. The third
// lives, and whatever the point was, there is one effect.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []string{beforeBegin, afterBegin, duringEffect, afterEffect, afterFinish, beforeAck} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench, name string) {
				t.Helper()
				event := uuid.New()
				for range 2 {
					b.killAt(order{Door: name, StandAt: point}, event)
				}
				done := 0
				if point == afterFinish || point == beforeAck {
					done = 1
				}
				b.want(event, done, done)
				b.redeliver(order{Door: name}, event)
				b.want(event, 1, 1)
				b.redeliver(order{Door: name}, event)
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
		const window = 8 // deliveries that are not yet acknowledged
		var events []uuid.UUID
		for range window * kills {
			events = append(events, uuid.New())
		}
		waiting, duplicates := events, 0
		for range kills {
			c := b.start(order{Door: name})
			for _, event := range waiting[:window] {
				c.send(event.String())
			}
			// It dies after some acknowledgements and a time that is about that of one more.
			for range rand.IntN(window - 2) {
				waiting = c.next(waiting)
			}
			<-time.After(time.Duration(rand.IntN(1500)) * time.Microsecond) // a moment; nothing is waited for
			c.kill()
			duplicates += b.count(`SELECT count(*) FROM outbox_inbox WHERE event_id = ANY($1)`, waiting)
		}
		c := b.start(order{Door: name})
		for len(waiting) > 0 {
			c.send(waiting[0].String())
			waiting = c.next(waiting)
		}
		for _, event := range events {
			b.want(event, 1, 1)
		}
		if n := b.count(`SELECT count(*) FROM effects`); n != 2*len(events) {
			t.Errorf("%d halves of effects for %d events", n, len(events))
		}
		t.Logf("%d kills; %d deliveries of events that were handled and not acknowledged", kills, duplicates)
	})
}

// next takes the next acknowledged event off a list.
func (r *running) next(waiting []uuid.UUID) []uuid.UUID {
	r.t.Helper()
	line, err := r.words.ReadString('\n')
	if word, id, _ := strings.Cut(strings.TrimSpace(line), " "); err != nil || word != acked || id != waiting[0].String() {
		r.t.Fatalf("the consumer wrote %q, %v; want the acknowledgement of %s", line, err, waiting[0])
	}
	return waiting[1:]
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
			URL: withSettings(b.url, "idle_in_transaction_session_timeout=200ms"), Door: name, StandAt: duringEffect,
		})
		hanging.send(event.String())
		hanging.await(duringEffect)
		b.deliver(b.door(name), event, true)
		hanging.send("go on")
		hanging.await(nacked + " " + event.String())
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
		var consumers []*running
		for range processes {
			c := b.start(order{URL: withSettings(b.url, "pool_max_conns=4"), Door: name, Races: goroutines})
			c.send(event.String())
			consumers = append(consumers, c)
		}
		pgtest.AwaitBlocked(b.t, b.pool, 4*processes)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range consumers {
			c.await(acked + " " + event.String())
		}
		b.want(event, 1, 1)
	})
}

// TestConnectionEnded has the server end a connection before its commit.
func TestConnectionEnded(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	c := b.start(order{Door: "pgx", StandAt: afterEffect})
	c.send(event.String())
	c.await(afterEffect)
	pgtest.Exec(t, b.pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction'`)
	c.send("go on")
	c.await(nacked + " " + event.String())
	b.want(event, 0, 0)
	b.redeliver(order{Door: "pgx"}, event)
	b.want(event, 1, 1)
}
