package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/inbox"
	"github.com/packfinderz/outbox/inbox/inboxtest"
	"github.com/packfinderz/outbox/publishertest"
)

// TestConsume handles every event once, each key's in order, and as it was published.
func TestConsume(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"plain", "cloudevents"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			broker, done := cluster(t), newRecord()
			sent := events(2000, 50)
			sent[0].ContentType = "application/json"
			delivered(t, open(t, broker.URL()+"?format="+format), sent)
			consumer := start(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
				done.add(m)
				return nil
			})))
			list := done.await(t, atLeast(len(sent)))
			consumer.stop()
			if n := uncommitted(t, broker); n != 0 || len(done.all()) != len(sent) {
				t.Errorf("%d messages are uncommitted, %d were handled", n, len(done.all()))
			}
			places := make(map[string]int)
			for _, m := range list {
				var n int
				if _, err := fmt.Sscan(m.Headers["n"], &n); err != nil {
					t.Fatal(err)
				}
				if last, seen := places[m.Key]; seen && n <= last {
					t.Fatalf("key %s: %d after %d", m.Key, n, last)
				}
				places[m.Key] = n
				want := sent[n]
				if m.ID != want.ID || m.Topic != want.Topic || m.Key != want.Key || m.Type != want.Type || string(m.Payload) != string(want.Payload) ||
					m.ContentType != want.ContentType || m.Attempt != 1 || !m.CreatedAt.Equal(want.CreatedAt) || len(m.Headers) != 1 {
					t.Fatalf("got  %+v\nwant %+v", m, want)
				}
			}
		})
	}
}

// TestDeadLetters has events that fail in every delivery, that cannot be handled at all, and
// messages that are no event. All are dead letters in the end, with the reason.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	broker, tried, told := cluster(t), newRecord(), make(reports, 100)
	failure := errors.New("no stock")
	config := withDeadLetters(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		tried.add(m)
		if m.AggregateID == "0" {
			return failure
		}
		return outbox.Terminal(failure)
	})), broker.URL())
	config.Process.Hooks = []any{told}
	sent := events(2, 2)
	delivered(t, open(t, broker.URL()), sent)
	produce(t, broker, &kgo.Record{
		Topic: publishertest.Topic, Value: []byte("hello"), Headers: []kgo.RecordHeader{{Key: "color", Value: []byte("red")}},
	})
	consumer := start(t, config)
	for range 3 {
		told.next(t, consume.DeadLetter)
	}
	consumer.stop()
	if n := uncommitted(t, broker); n != 0 {
		t.Errorf("%d messages are uncommitted", n)
	}
	attempts := make(map[uuid.UUID][]int)
	for _, m := range tried.all() {
		attempts[m.ID] = append(attempts[m.ID], m.Attempt)
	}
	if got := fmt.Sprint(attempts[sent[0].ID], attempts[sent[1].ID]); got != "[1 2 3] [1]" {
		t.Errorf("attempts: %s", got)
	}
	dead := make(map[string]publishertest.Received)
	list, err := kafkatest.Read(deadTopic, strings.Split(broker.Addresses(), ",")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, letter := range list {
		dead[string(letter.Payload)] = letter
	}
	for payload, want := range map[string][4]string{
		string(sent[0].Payload): {sent[0].ID.String(), consume.ReasonMaxDeliveries, "no stock", "3"},
		string(sent[1].Payload): {sent[1].ID.String(), "terminal", "no stock", "1"},
		"hello":                 {"", "terminal", `the message carries no event: event id "": invalid UUID length: 0`, "1"},
	} {
		a := dead[payload].Attributes
		if a[consume.DeadReason] != want[1] || a[consume.DeadError] != want[2] || a[consume.DeadDeliveries] != want[3] ||
			a[consume.DeadTopic] != publishertest.Topic || want[0] != "" && a["event_id"] != want[0] {
			t.Errorf("the letter of %s: %v", payload, a)
		}
	}
	if len(dead) != 3 || dead["hello"].Attributes["color"] != "red" || dead[string(sent[0].Payload)].Attributes["n"] != "0" {
		t.Errorf("dead letters: %v", dead)
	}
}

// TestNothingIsGivenUp has no dead letters: an event comes again until it is handled.
func TestNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	broker, tried := cluster(t), newRecord()
	start(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		tried.add(m)
		return outbox.Terminal(errors.New("never"))
	})))
	delivered(t, open(t, broker.URL()), events(1, 1))
	list := tried.await(t, atLeast(8))
	for i, m := range list[:8] {
		if m.Attempt != i+1 {
			t.Errorf("delivery %d says %d", i+1, m.Attempt)
		}
	}
}

// TestOrdered has the first event of one key fail some times. Those behind it wait, those of
// other keys do not, although only one is handled at a time.
func TestOrdered(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), newRecord()
	var failures atomic.Int32
	others := make(chan struct{})
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		if m.Headers["n"] == "0" {
			if failures.Add(1) == 1 {
				return errors.New("not yet")
			}
			select {
			case <-others:
			default:
				return errors.New("not yet")
			}
		}
		done.add(m)
		if m.Headers["n"] == "11" {
			close(others)
		}
		return nil
	}))
	config.Concurrency = 1
	sent := events(12, 2)
	delivered(t, open(t, broker.URL()), sent)
	start(t, config)
	var even, odd string
	for i, m := range done.await(t, atLeast(len(sent))) {
		if m.AggregateID == "0" {
			even += m.Headers["n"] + " "
			continue
		}
		odd += m.Headers["n"] + " "
		if i >= 6 {
			t.Errorf("event %s waited for another key", m.Headers["n"])
		}
	}
	if even != "0 2 4 6 8 10 " || odd != "1 3 5 7 9 11 " || failures.Load() < 2 {
		t.Errorf("handled %s and %s after %d failures", even, odd, failures.Load())
	}
}

// TestSlowHandler handles for longer than a session, while a second consumer joins the group: it
// waits for the partition, and nothing is handled twice.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), newRecord()
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		if len(done.all()) <= 4 {
			<-time.After(2500 * time.Millisecond) // it is the time that matters
		}
		return nil
	}))
	config.SessionTimeout = time.Second
	sent := events(12, 4)
	delivered(t, open(t, broker.URL()), sent)
	first := start(t, config)
	done.await(t, atLeast(1))
	second := start(t, config)
	done.await(t, atLeast(len(sent)))
	first.stop()
	second.stop()
	if len(done.all()) != len(sent) || uncommitted(t, broker) != 0 {
		t.Errorf("%d deliveries of %d events; %d are uncommitted", len(done.all()), len(sent), uncommitted(t, broker))
	}
}

// TestRebalance has a second consumer join and the first leave in the middle. Every event is
// handled once, each key's in order.
func TestRebalance(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), newRecord()
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		<-time.After(time.Millisecond)
		done.add(m)
		return nil
	}))
	sent := events(3000, 50)
	delivered(t, open(t, broker.URL()), sent)
	first := start(t, config)
	done.await(t, atLeast(500))
	second := start(t, config)
	done.await(t, atLeast(1500))
	first.stop()
	done.await(t, atLeast(len(sent)))
	second.stop()
	places := make(map[string]int)
	for _, m := range done.all() {
		var n int
		if _, err := fmt.Sscan(m.Headers["n"], &n); err != nil {
			t.Fatal(err)
		}
		if last, seen := places[m.Key]; seen && n <= last {
			t.Fatalf("key %s: %d after %d", m.Key, n, last)
		}
		places[m.Key] = n
	}
	if len(done.all()) != len(sent) || uncommitted(t, broker) != 0 {
		t.Errorf("%d deliveries of %d events; %d are uncommitted", len(done.all()), len(sent), uncommitted(t, broker))
	}
}

// TestStuckPartition has a key that fails, with more events behind it than are taken at once.
// Other partitions go on.
func TestStuckPartition(t *testing.T) {
	t.Parallel()
	broker, tried, done := cluster(t), newRecord(), newRecord()
	release := make(chan struct{})
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		if m.Key == "order/0" {
			tried.add(m)
			select {
			case <-release:
			default:
				return errors.New("not yet")
			}
		}
		done.add(m)
		return nil
	}))
	config.Concurrency = 4
	publisher := open(t, broker.URL())
	delivered(t, publisher, events(200, 1))
	start(t, config)
	tried.await(t, atLeast(3))
	delivered(t, publisher, events(220, 11))
	done.await(t, atLeast(20))
	close(release)
	done.await(t, atLeast(420))
}

// TestConsumeDuplicates publishes every event twice, and has one effect of each.
func TestConsumeDuplicates(t *testing.T) {
	t.Parallel()
	broker, effects, told := cluster(t), newRecord(), make(reports, 1000)
	memory, err := inboxtest.NewMemory(inbox.TTL{Processing: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	config := settings(t, broker.URL(), handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, memory, group, m.ID, func(context.Context) error { effects.add(m); return nil })
		return err
	}))
	config.Process.Hooks = []any{told}
	const n = 100
	sent, publisher := events(n, 10), open(t, broker.URL())
	delivered(t, publisher, sent)
	delivered(t, publisher, sent)
	start(t, config)
	for range 2 * n {
		told.next(t, consume.Handled)
	}
	if counts := ids(effects.all()); len(counts) != n || len(effects.all()) != n {
		t.Errorf("%d effects of %d events", len(effects.all()), len(counts))
	}
}
