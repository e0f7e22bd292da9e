//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// TestChaos emits through outbox.Service while of two publishers now one, now the other is killed, the topic is deleted and made
// again, and Redis is restarted. Nothing is lost, no outage makes a dead letter, and every event has its effect once. The long form,
// OUTBOX_CHAOS=long, is 20,000 events and 50 kills.
func TestChaos(t *testing.T) {
	t.Parallel()
	events, kills := 600, 6
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		events, kills = 20_000, 50
	}
	c := &chaos{system: newSystem(t)}
	c.gorm = pftest.GORM(t, c.pool)
	c.settling = backendtest.NewGate(t, c.pool, "outbox_events", "UPDATE OF published_at")
	var err error
	if c.service, err = outbox.NewService(outbox.Config{}); err != nil {
		t.Fatal(err)
	}
	worker := c.start("worker", chaosWorker)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the worker's last words:\n%s", worker.LastWords())
		}
	})
	for i := range c.publishers {
		c.publishers[i] = c.start("outbox-publisher", chaosPublishers[i])
	}
	for kill := range kills {
		switch kill {
		case kills / 3:
			c.deleteTopic(events / kills)
		case 2 * kills / 3:
			c.redis.Stop(t)
			c.redis.Start(t)
		}
		// The server of the test delivers slowly, and drops what has waited for ten minutes.
		c.atMost(backlog, "messages to be acknowledged", c.unacknowledged)
		// Of four kills two come between Pub/Sub's answer and the settle, and two wherever they come.
		c.kill(kill%2, events/kills, kill/2%2 == 0)
	}
	c.settled()
	c.verify(kills)
}

const chaosWorker = "chaos-worker"

// backlog is how many messages may wait for the worker before more are emitted.
const backlog = 1000

var chaosPublishers = []string{"chaos-publisher-0", "chaos-publisher-1"}

type chaos struct {
	*system
	gorm       *gorm.DB
	service    outbox.Emitter
	settling   *backendtest.Gate
	publishers [2]*process
	emitted    []uuid.UUID
}

// emit emits events, each in a transaction of its own, several at once.
func (c *chaos) emit(n int) (done func()) {
	const producers = 4
	ids := make([]uuid.UUID, n)
	var running sync.WaitGroup
	for first := range producers {
		running.Go(func() {
			for i := first; i < n; i += producers {
				license := uuid.New()
				err := c.gorm.Transaction(func(tx *gorm.DB) error {
					emitted, err := c.service.Emit(tx, outbox.DomainEvent{AggregateID: license, Data: payloads.LicenseStatusChanged{
						LicenseID: license, StoreID: uuid.New(), Status: payloads.LicensePending,
					}})
					ids[i] = emitted.ID
					return err
				})
				if err != nil {
					c.Errorf("emit: %v", err)
				}
			}
		})
	}
	return func() {
		running.Wait()
		c.emitted = append(c.emitted, ids...)
	}
}

// settledRows is how many events are published.
func (c *chaos) settledRows() int {
	c.Helper()
	return backendtest.Count(c, c.pool, `SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL`)
}

// kill kills a publisher while events are emitted and published, and starts it again: when Pub/Sub has its events and the rows do
// not say so yet, or wherever it is.
func (c *chaos) kill(which, events int, settling bool) {
	c.Helper()
	session, before := chaosPublishers[which], c.settledRows()
	if settling {
		c.settling.Close()
	}
	emitted := c.emit(events)
	if settling {
		c.settling.AwaitStanding(session)
	} else {
		await.Until(c, "some events to be published", func() bool { return c.settledRows() > before })
	}
	c.publishers[which].Kill()
	if settling {
		c.settling.EndSessions(session) // else the server ends what it was sent, and the rows say so after all
		c.settling.Open()
	}
	c.publishers[which] = c.start("outbox-publisher", session)
	emitted()
}

// deleteTopic deletes the topic under load, and makes it again with its subscription. Both are there before a publisher can know:
// what is published to a topic without a subscription is nobody's.
func (c *chaos) deleteTopic(events int) {
	c.Helper()
	c.settled()
	topic := pubsubtest.TopicPath(registry.DefaultTopics().Domain)
	if _, err := c.broker.Server.GServer.DeleteTopic(c.Context(), &pubsubpb.DeleteTopicRequest{Topic: topic}); err != nil {
		c.Fatal(err)
	}
	c.emit(events)()
	for _, publisher := range c.publishers {
		backendtest.AwaitStatus(c, publisher.address, "/readyz", http.StatusServiceUnavailable)
		publisher.Kill()
	}
	name := "projects/" + pubsubtest.Project + "/subscriptions/" + subscription
	if _, err := c.broker.Server.GServer.DeleteSubscription(c.Context(), &pubsubpb.DeleteSubscriptionRequest{Subscription: name}); err != nil {
		c.Fatal(err)
	}
	c.broker.CreateTopic(c, registry.DefaultTopics().Domain)
	c.subscribe()
	// The service ends the streams of a subscription that is deleted; this server does not.
	c.broker.Stop(c)
	c.broker.Start(c)
	for i := range c.publishers {
		c.publishers[i] = c.start("outbox-publisher", chaosPublishers[i])
	}
}

// settled waits until every event is published, and every message acknowledged.
func (c *chaos) settled() {
	c.Helper()
	c.atMost(0, "events to be published", func() int { return len(c.emitted) - c.settledRows() })
	c.atMost(0, "messages to be acknowledged", c.unacknowledged)
}

// unacknowledged is how many messages the worker has not had, or not handled.
func (c *chaos) unacknowledged() (open int) {
	for _, m := range c.published() {
		if m.Acks == 0 {
			open++
		}
	}
	return open
}

// atMost waits until no more than so many are left of something, however long that takes, as long as they become less.
func (c *chaos) atMost(most int, what string, left func() int) {
	c.Helper()
	for before := left(); before > most; {
		await.Until(c, fmt.Sprintf("less than %d %s", before, what), func() bool {
			now := left()
			less := now < before
			before = min(before, now)
			return less
		})
	}
}

// verify compares what was emitted with what came of it, and says what the run has met.
func (c *chaos) verify(kills int) {
	c.Helper()
	for what, query := range map[string]string{
		"dead letters":                        `SELECT count(*) FROM outbox_dlq`,
		"counted attempts":                    `SELECT count(*) FROM outbox_events WHERE attempt_count > 0`,
		"events without their notification":   `SELECT count(*) FROM outbox_events e WHERE NOT EXISTS (SELECT FROM notifications n WHERE n.event_id = e.id)`,
		"notifications more than one for one": `SELECT count(*) - count(DISTINCT event_id) FROM notifications`,
	} {
		if n := backendtest.Count(c, c.pool, query); n != 0 {
			c.Errorf("%d %s", n, what)
		}
	}
	if n := backendtest.Count(c, c.pool, `SELECT count(*) FROM outbox_events WHERE id = ANY($1)`, c.emitted); n != len(c.emitted) {
		c.Errorf("%d of %d events are in the table", n, len(c.emitted))
	}
	for _, m := range c.broker.Server.Messages() {
		if m.Topic == pubsubtest.TopicPath("pf-domain-events-dead") {
			c.Errorf("the worker gave event %s up", m.Attributes["event_id"])
		}
	}
	c.duplicates(kills)
}

// duplicates looks for every copy in the logs. The publishers have a line for each acknowledgement that they read. One that is killed
// after Pub/Sub has stored an event and before it has read the answer cannot have it: then the worker's line tells of the copy.
func (c *chaos) duplicates(kills int) {
	c.Helper()
	stored := make(map[string]int)
	for _, m := range c.published() {
		stored[m.Attributes["event_id"]]++
	}
	delivered := c.lines("event delivered", chaosPublishers...)
	handled := c.lines("event handled", chaosWorker)
	copies, unread := 0, 0
	for id, n := range stored {
		copies += n - 1
		unread += n - delivered[id]
		if delivered[id] < 1 || delivered[id] > n {
			c.Errorf("Pub/Sub has event %s %d times, and the publishers' logs %d times", id, n, delivered[id])
		}
		if handled[id] < n {
			c.Errorf("Pub/Sub has event %s %d times, and the worker's log %d times", id, n, handled[id])
		}
	}
	c.Logf("%d events, %d kills: %d were published again; of %d the acknowledgement was not read", len(c.emitted), kills, copies, unread)
	if copies < kills/3 {
		c.Error("the kills hit nothing, and prove nothing")
	}
}
