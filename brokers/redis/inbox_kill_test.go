package redis_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// killAt kills a consumer at the point where it was told to stand still.
func (b *bench) killAt(r role, event uuid.UUID) {
	b.t.Helper()
	c := b.start(r)
	c.send(event)
	c.await(r.StandAt)
	c.kill()
}

// redeliver has a consumer take an event to its end.
func (b *bench) redeliver(r role, event uuid.UUID) {
	b.t.Helper()
	c := b.start(r)
	c.send(event)
	c.await(acked + " " + event.String())
	c.kill()
}

// TestKilled kills the consumers of two deliveries of an event at the same point. The third
// lives: there is one effect, and one more only for each kill between the effect and the mark.
func TestKilled(t *testing.T) {
	t.Parallel()
	for point, effects := range map[string]int{
		beforeBegin: 1, afterBegin: 1, duringEffect: 1, afterEffect: 3, afterFinish: 1, beforeAck: 1,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b, event := newBench(t), uuid.New()
			for range 2 {
				b.killAt(role{StandAt: point}, event)
			}
			for range 2 {
				b.redeliver(role{}, event)
				b.want(event, effects)
			}
		})
	}
}

// TestMarkBeforeEffect is the fault put back: the effect of a consumer that is killed in between is
// lost, because the next delivery takes the event for handled.
func TestMarkBeforeEffect(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	b.killAt(role{StandAt: afterBegin, MarkBefore: true}, event)
	b.redeliver(role{MarkBefore: true}, event)
	b.want(event, 0)
}

// TestKilledAtRandom has a consumer killed over and over, wherever it is, while events are
// delivered to it again until it has acknowledged them all.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills := 10
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		kills = 200
	}
	b := newBench(t)
	const window = 8 // deliveries that are not yet acknowledged
	var events []uuid.UUID
	for range window * kills {
		events = append(events, uuid.New())
	}
	waiting, again := events, make(map[uuid.UUID]int)
	for range kills {
		c := b.start(role{})
		for _, event := range waiting[:window] {
			c.send(event)
		}
		// It dies after some acknowledgements and a time that is about that of one more.
		for range rand.IntN(window - 2) {
			waiting = c.next(waiting)
		}
		<-time.After(time.Duration(rand.IntN(1500)) * time.Microsecond) // a moment; nothing is waited for
		c.kill()
		for _, event := range waiting[:window] {
			key := "pf:evt:processed:" + inboxConsumer + ":" + event.String()
			marked := strings.HasPrefix(b.broker.Client().Get(t.Context(), key).Val(), "done:")
			if b.count(event) > again[event] && !marked {
				again[event]++ // the kill fell between the effect and the mark
			}
		}
	}
	c := b.start(role{})
	for len(waiting) > 0 {
		c.send(waiting[0])
		waiting = c.next(waiting)
	}
	for _, event := range events {
		b.want(event, 1+again[event])
	}
	t.Logf("%d kills; %d of them between an effect and its mark", kills, len(again))
}

// next takes the next acknowledged event off a list.
func (c *running) next(waiting []uuid.UUID) []uuid.UUID {
	c.t.Helper()
	c.await(acked + " " + waiting[0].String())
	return waiting[1:]
}

// TestRace has 64 goroutines in each of four processes handle one event at once.
func TestRace(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	var consumers []*running
	for range 4 {
		consumers = append(consumers, b.start(role{Races: 64}))
	}
	for _, c := range consumers {
		c.send(event)
	}
	for _, c := range consumers {
		c.await(acked + " " + event.String())
	}
	b.want(event, 1)
}
