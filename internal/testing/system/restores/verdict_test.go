//go:build unix

package restores

// How a stream goes on elsewhere, and what must have become of every event.

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/process"
)

// few is how many events producers write at a time.
const few = 100

// repaired is what outbox repair reports.
type repaired struct {
	Events         int64 `json:"events"`
	BySubscription []struct {
		Name string `json:"name"`
		// Unread events were not delivered; doubtful ones may have been, and are published again.
		Unread   int64 `json:"unread"`
		Doubtful int64 `json:"doubtful"`
	} `json:"bySubscription"`
}

// doubtful is how many events of a subscription may have been delivered before.
func (r *repaired) doubtful(subscription string) int64 {
	for _, s := range r.BySubscription {
		if s.Name == subscription {
			return s.Doubtful
		}
	}
	return 0
}

// resumes starts the relays, and producers go on. What is parked for later is still so; then its time comes.
func (s *stage) resumes(w *writers, unfinished *open) {
	s.Helper()
	s.run("stats")
	var relays []*process.Process
	for _, subscription := range subscriptions() {
		relays = append(relays, s.relay(subscription))
	}
	w.write(s.T, s.pool, few)
	unfinished.commit(s.T)
	w.write(s.T, s.pool, few)
	for _, subscription := range subscriptions() {
		s.await("everything that is due", func() bool {
			parked := s.parked(subscription)
			// One is dead, three are for later, and two wait behind one of those.
			return s.behind(subscription) == 0 && parked["dead"] == 1 && parked["retry"]+parked["waiting"] == 5
		}, relays...)
	}
	for _, relay := range relays {
		s.terminate(relay)
	}
	for _, subscription := range subscriptions() {
		for _, a := range s.arrivals(subscription) {
			if slices.Contains([]string{poisonKey, stuckKey, laterKey}, a.Key) {
				s.Errorf("%s: an event of key %s came before its time", subscription, a.Key)
			}
		}
		s.run("retry", "--all", "--subscription", subscription)
	}
	if n := ask[int](s, `SELECT count(*) FROM outbox_parked WHERE key = $1 AND state = 'retry' AND attempts = 1
		AND next_attempt_at > now() AND last_error IS NOT NULL`, stuckKey); n != len(subscriptions()) {
		s.Errorf("%d of the refused events are as they were", n)
	}
	s.exec(`UPDATE outbox_parked SET next_attempt_at = now(), not_before = NULL WHERE state = 'retry'`)
	for _, subscription := range subscriptions() {
		s.run("drain", "--subscription", subscription, "--to", "file:"+s.inbox(subscription), "--timeout", process.Patience.String())
	}
	s.run("doctor", "--check", "restored")
}

// judge holds what arrived against what there is.
func (s *stage) judge(from *source, w *writers, reported *repaired) (line string) {
	s.Helper()
	topics := s.log()
	lost, again, unread, doubtful, inverted := 0, 0, 0, int64(0), 0
	for id := range w.emitted {
		if _, there := topics[id]; !there {
			s.Errorf("event %s is no longer in the stream", id)
		}
	}
	for _, subscription := range subscriptions() {
		missing, repeated, disorder := s.judgeSubscription(subscription, topics, from, w)
		lost, again, inverted = lost+missing, again+repeated, inverted+disorder
		unread += len(from.unread[subscription])
		if promised := reported.doubtful(subscription); int64(repeated) > promised {
			s.Errorf("%s: %d events were published again; repair reported %d", subscription, repeated, promised)
		}
		doubtful += reported.doubtful(subscription)
	}
	return fmt.Sprintf("%7d %7d %7d %6d %9d %7d %9d", len(topics), unread, len(topics)-len(from.writers.emitted), lost, doubtful, again, inverted)
}

func (s *stage) judgeSubscription(subscription string, topics map[uuid.UUID]string, from *source, w *writers) (lost, again, inverted int) {
	s.Helper()
	arrived := make(map[uuid.UUID]int)
	last := make(map[string]int64)
	for _, a := range s.arrivals(subscription) {
		arrived[a.ID]++
		known, committed := w.emitted[a.ID]
		switch {
		case !committed || !takes(subscription, known.topic):
			s.Errorf("%s: event %s arrived, which is none of its own", subscription, a.ID)
		case a.Key == "" || a.Key == laterKey || arrived[a.ID] > 1: // no order is promised
		case a.Payload.Version < last[a.Key]:
			inverted++
			s.Errorf("%s: version %d of %s came after version %d", subscription, a.Payload.Version, a.Key, last[a.Key])
		default:
			last[a.Key] = a.Payload.Version
		}
	}
	for id, topic := range topics {
		if !takes(subscription, topic) {
			continue
		}
		_, copied := from.writers.emitted[id]
		switch {
		case copied && !from.unread[subscription][id]:
			again += arrived[id] // it was settled before
		case arrived[id] == 0:
			lost++
			s.Errorf("%s: event %s of key %q is lost", subscription, id, w.emitted[id].key)
		default:
			again += arrived[id] - 1
		}
	}
	return lost, again, inverted
}
