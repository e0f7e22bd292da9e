//go:build unix

package chaos

import (
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

// again is the subscription that is dropped and made again.
const again = "again"

// noisePerRound is how many events of topic noise each round emits.
const noisePerRound = 20

// generations is a run in which subscriptions change under their relays.
type generations struct {
	*run
	stream *stream
	// late serves the subscription that is dropped and made again.
	late     *relay
	restarts int // lives of it that ended because they met no subscription
}

// TestGenerations alters the filter of one subscription back and forth under load, and drops another one and makes it
// again. What every definition takes arrives once, and in order; what the definition of the moment does not take never
// arrives, once the relays have noticed; what it takes is not lost. The subscription that was made again has everything.
func TestGenerations(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		rounds = 60
	}
	g := &generations{run: newRun(t, plan{
		program: process.Build(t), url: pgtest.URL(t), layout: pgstream.LayoutName,
		count: 2, think: 100 * time.Millisecond, steady: true, lease: longLease, seed: seed(t),
	})}
	g.stream = &stream{pool: g.pool}
	g.subscriptions("create", again)
	box := newMailbox(t)
	g.late = &relay{name: "late", flags: []string{"--subscription", again}, inbox: box}
	g.start(g.late)

	refused := 0
	for round := range rounds {
		takes := round%2 == 1
		if takes {
			g.subscriptions("alter", pgstream.DefaultSubscription, "--clear", "topic")
		} else {
			g.subscriptions("alter", pgstream.DefaultSubscription, "--topic", "accounts")
		}
		g.await("the relays to notice", func() bool {
			g.keepBusy()
			return g.number(`SELECT count(*) FROM outbox_relays AS r JOIN outbox_subscriptions AS s ON s.name = r.subscription
				WHERE s.name = 'default' AND r.alive_until > now() AND r.generation IS DISTINCT FROM s.generation`) == 0
		})
		noise := g.noise()
		if takes {
			g.producers.commit(noise)
		} else {
			refused += len(noise) // they would be ghosts
		}
		g.makeAgain(round%3 != 0)
		g.await("the noise to be passed", func() bool {
			g.keepBusy()
			return g.number(streamsql.Names("", `SELECT count(*) FROM {stream} AS e JOIN {shards} AS c ON c.shard = e.shard
				WHERE c.subscription = 'default' AND e.id = ANY($1) AND NOT {behind}`), noise) == 0
		})
	}
	g.check(g.producers.finish())
	g.revive()
	mailbox, ok := g.inbox.(*mailbox)
	if !ok {
		t.Fatalf("%T is not a mailbox", g.inbox)
	}
	g.arrives(mailbox, "the subscription that was altered")
	g.arrives(box, "the subscription that was made again")
	for _, relay := range append(g.relays, g.late) {
		g.terminate(relay)
	}
	report := g.judge(mailbox, Limits{})
	g.judgeAgain(box)
	t.Logf("%d events, %d refused by the filter of the moment, %d definitions, %d subscriptions made again, %d restarts; lost %d, twice %d, inverted %d",
		report.Events, refused, rounds, rounds, g.restarts, len(report.Lost), report.Twice, len(report.Inversions))
}

// subscriptions runs a command on a subscription.
func (g *generations) subscriptions(args ...string) {
	g.Helper()
	g.command("subscriptions", args...).MustSucceed(g.T)
}

// noise emits events that only some definitions take.
func (g *generations) noise() (ids []uuid.UUID) {
	g.Helper()
	for range noisePerRound {
		var id uuid.UUID
		g.check(g.pool.QueryRow(g.Context(), `SELECT outbox_emit('made', '{}', 'noise')`).Scan(&id))
		ids = append(ids, id)
	}
	return ids
}

// makeAgain drops the other subscription while its relay is at work, and makes it again for the same events: at once, so
// that the relay may meet the new one, or by two processes, so that it meets none.
func (g *generations) makeAgain(atOnce bool) {
	g.Helper()
	before := g.late.inbox.size(g.late)
	g.await("the relay to be at work", func() bool {
		g.keepBusy()
		return g.late.inbox.size(g.late) > before
	})
	topics := []string{"accounts", "noise"}
	if atOnce {
		g.check(pgstream.Stream{}.DropSubscription(g.Context(), g.pool, again, pgstream.Forced()))
		g.check(pgstream.Stream{}.CreateSubscription(g.Context(), g.pool,
			pgstream.Subscription{Name: again, Filter: pgstream.Filter{Topics: topics}}, pgstream.StartOldest))
	} else {
		g.subscriptions("drop", again, "--force")
		g.subscriptions("create", again, "--topic", topics[0], "--topic", topics[1])
	}
	g.revive()
}

// revive starts the relay again if it met no subscription: whether it does is a matter of its heartbeat.
func (g *generations) revive() {
	g.Helper()
	var worker string
	g.await("the relay to serve the new one, or to end", func() bool {
		if g.late.Ended() {
			return true
		}
		return g.pool.QueryRow(g.Context(), `SELECT r.worker::text FROM outbox_relays AS r JOIN outbox_subscriptions AS s ON s.name = r.subscription
			WHERE s.name = $1 AND r.generation = s.generation AND r.alive_until > now()`, again).Scan(&worker) == nil
	})
	if g.late.Ended() {
		if !g.late.Logs("was dropped") {
			g.Fatalf("the relay ended: %v\n%s", g.late.Err(), g.late.Tail())
		}
		g.restarts++
		g.start(g.late)
	}
}

// judgeAgain holds what arrived of the other subscription against what is in the stream: it takes everything, as often as
// it was made.
func (g *generations) judgeAgain(box *mailbox) {
	g.Helper()
	arrived, spoiled, err := box.deliveries()
	g.check(err)
	history := History{Committed: g.producers.committed, Deliveries: arrived, Spoiled: spoiled}
	report := history.Judge()
	if len(report.Lost)+len(report.Inversions)+len(report.Spoiled) > 0 {
		g.Errorf("of the subscription that was made again %d events are lost, %d inverted, %d spoiled",
			len(report.Lost), len(report.Inversions), len(report.Spoiled))
	}
}

func (g *generations) number(sql string, args ...any) int {
	g.Helper()
	n, err := g.stream.count(g.Context(), sql, args...)
	g.check(err)
	return n
}
