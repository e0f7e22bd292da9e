//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

const (
	rounds   = 3
	licenses = 12 // of a round; half of them are approved, and half rejected
)

// The sessions of the programs that are killed, and of those that are not.
const (
	killedPublisher, otherPublisher = "killed-publisher", "other-publisher"
	killedWorker, otherWorker       = "killed-worker", "other-worker"
)

// TestEveryChangeIsNotifiedOnce takes licences the whole way: api, PostgreSQL, two publishers, Pub/Sub, two workers,
// notifications, each in a process of its own. In every round a publisher is killed when Pub/Sub has its events and the rows
// do not say so yet, and a worker in the middle of writing notifications. Every change has exactly its notification.
func TestEveryChangeIsNotifiedOnce(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	settling := backendtest.NewGate(t, s.pool, "outbox_events", "UPDATE OF published_at")
	writing := backendtest.NewGate(t, s.pool, "notifications", "INSERT")
	api := s.start("api", "api")
	s.start("outbox-publisher", otherPublisher)
	s.start("worker", otherWorker)

	var made []license
	for range rounds {
		settling.Close()
		writing.Close()
		publisher, worker := s.start("outbox-publisher", killedPublisher), s.start("worker", killedWorker)
		made = append(made, s.change(api.address)...)
		settling.AwaitStanding(killedPublisher)
		publisher.Kill()
		settling.EndSessions(killedPublisher) // else the server ends what it was sent, and the rows say so after all
		settling.Open()
		writing.AwaitStanding(killedWorker)
		worker.Kill()
		writing.Open()
	}

	events := 2 * len(made)
	await.Until(t, "every event to be published", func() bool {
		return backendtest.Count(t, s.pool, `SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL`) == events
	})
	await.Until(t, "every message to be acknowledged", func() bool {
		for _, m := range s.published() {
			if m.Acks == 0 {
				return false
			}
		}
		return true
	})
	s.check(made)
}

// license is one that was uploaded and decided on.
type license struct {
	id, store uuid.UUID
	status    string
	reason    string
}

// change makes a store and has licences uploaded and decided on, all at once. Every request is sent twice, as by a client that
// did not hear the answer.
func (s *system) change(address string) []license {
	s.Helper()
	store := uuid.New()
	s.twice(http.MethodPut, address, "/v1/stores/"+store.String(), s.body("name", "Green Leaf"))
	made := make([]license, licenses)
	var wg sync.WaitGroup
	for i := range made {
		made[i] = license{id: uuid.New(), store: store, status: "verified"}
		if i%2 == 1 {
			made[i].status, made[i].reason = "rejected", fmt.Sprintf("page %d is unreadable", i)
		}
		wg.Go(func() {
			id := made[i].id.String()
			s.twice(http.MethodPut, address, "/v1/stores/"+store.String()+"/licenses/"+id, s.body("number", "C11-"+id))
			if made[i].reason == "" {
				s.twice(http.MethodPost, address, "/v1/licenses/"+id+"/approve", "")
			} else {
				s.twice(http.MethodPost, address, "/v1/licenses/"+id+"/reject", s.body("reason", made[i].reason))
			}
		})
	}
	wg.Wait()
	return made
}

func (s *system) twice(method, address, path, body string) {
	for range 2 {
		if status := backendtest.Request(s, method, "http://"+address+path, body); status != http.StatusOK && status != http.StatusCreated {
			s.Errorf("%s %s: %d", method, path, status)
		}
	}
}

// check compares what was changed with what was told, and says what the run has met.
func (s *system) check(made []license) {
	s.Helper()
	for _, l := range made {
		wanted := backendtest.Count(s, s.pool, `
			SELECT count(*) FROM notifications
			WHERE license_id = $1 AND store_id = $2 AND type = 'compliance' AND (
				audience = 'admin' AND status = 'pending' AND reason = '' OR
				audience = 'store' AND status::text = $3 AND reason = $4 AND ($4 = '' OR message LIKE '%' || $4))`, l.id, l.store, l.status, l.reason)
		if wanted != 2 {
			s.Errorf("licence %s, which is %s, has %d of its 2 notifications", l.id, l.status, wanted)
		}
	}
	events := 2 * len(made)
	if n := backendtest.Count(s, s.pool, `SELECT count(*) FROM notifications JOIN outbox_events ON outbox_events.id = event_id`); n != events {
		s.Errorf("%d notifications of %d events", n, events)
	}
	if n := backendtest.Count(s, s.pool, `SELECT count(*) FROM notifications`); n != events {
		s.Errorf("%d notifications, want %d", n, events)
	}
	if n := s.marks(); n != events {
		s.Errorf("Redis knows %d events as handled, want %d", n, events)
	}
	if n := backendtest.Count(s, s.pool, `SELECT count(*) FROM outbox_dlq`); n != 0 {
		s.Errorf("%d dead letters", n)
	}
	// A publisher that was killed leaves copies, and a worker notifications that it could not mark.
	copies, unmarked := len(s.published())-events, s.logged(`"written before"`, otherWorker, killedWorker)
	s.Logf("%d events, %d kills: %d were published again, %d had been notified and not marked", events, 2*rounds, copies, unmarked)
	s.checkLog()
	if copies < rounds || unmarked < rounds {
		s.Error("the kills hit nothing, and prove nothing")
	}
}

// checkLog holds the publishers' logs against Pub/Sub: one line for each message that it has taken, those of killed publishers, too.
// Whoever asks where a duplicate came from finds both.
func (s *system) checkLog() {
	s.Helper()
	messages := make(map[string]int)
	for _, m := range s.published() {
		messages[m.Attributes["event_id"]]++
	}
	logged := s.lines("event delivered", killedPublisher, otherPublisher)
	if !maps.Equal(logged, messages) {
		s.Errorf("Pub/Sub has the events so often: %v\nand the logs: %v", messages, logged)
	}
}
