package redisinbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// TestKilled kills the consumers of two deliveries of an event at the same point. The third
// lives: there is one effect, and one more only for each kill between the effect and the mark.
func TestKilled(t *testing.T) {
	t.Parallel()
	for point, effects := range map[string]int{
		inboxtest.BeforeBegin: 1, inboxtest.AfterBegin: 1, inboxtest.DuringEffect: 1, inboxtest.AfterEffect: 3, inboxtest.AfterFinish: 1, inboxtest.BeforeAck: 1,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b, event := newBench(t), uuid.New()
			for range 2 {
				b.start(role{StandAt: point}).DeliverAndKill(event)
			}
			for range 2 {
				b.start(role{}).DeliverAndKill(event)
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
	b.start(role{StandAt: inboxtest.AfterBegin, MarkBefore: true}).DeliverAndKill(event)
	b.start(role{MarkBefore: true}).DeliverAndKill(event)
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
	b, again := newBench(t), make(map[uuid.UUID]int)
	events := inboxtest.KillAtRandom(t, kills, func() *inboxtest.Process { return b.start(role{}) }, func(unacknowledged []uuid.UUID) {
		for _, event := range unacknowledged {
			key := "pf:evt:processed:" + inboxConsumer + ":" + event.String()
			marked := strings.HasPrefix(b.broker.Client().Get(t.Context(), key).Val(), "done:")
			if b.count(event) > again[event] && !marked {
				again[event]++ // the kill fell between the effect and the mark
			}
		}
	})
	for _, event := range events {
		b.want(event, 1+again[event])
	}
	t.Logf("%d kills; %d of them between an effect and its mark", kills, len(again))
}

// TestRace has 64 goroutines in each of four processes handle one event at once.
func TestRace(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	var consumers []*inboxtest.Process
	for range 4 {
		consumers = append(consumers, b.start(role{Races: 64}))
	}
	for _, c := range consumers {
		c.Deliver(event)
	}
	for _, c := range consumers {
		c.AwaitEnd(inboxtest.Acked, event)
	}
	b.want(event, 1)
}
