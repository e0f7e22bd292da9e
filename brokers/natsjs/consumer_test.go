package natsjs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
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
			broker, done := ordersAndDead(t), newRecord()
			sent := events(2000, 50)
			sent[0].ContentType = "application/json"
			delivered(t, open(t, broker.URL()+"?format="+format), sent)
			consumer := start(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
				done.add(m)
				return nil
			})))
			list := done.await(t, atLeast(len(sent)))
			consumer.stop()
			if n := unsettled(t, broker); n != 0 || len(done.all()) != len(sent) {
				t.Errorf("%d messages are unsettled, %d were handled", n, len(done.all()))
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
	for name, ordered := range map[string]bool{"again by the stream": false, "again in place": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker, tried, told := ordersAndDead(t), newRecord(), make(reports, 100)
			failure := errors.New("no stock")
			config := withDeadLetters(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
				tried.add(m)
				if m.AggregateID == "0" {
					return failure
				}
				return outbox.Terminal(failure)
			})), broker.URL())
			config.Ordered, config.Process.Hooks = ordered, []any{told}
			sent := events(2, 2)
			delivered(t, open(t, broker.URL()), sent)
			conn := broker.Connect(t)
			if err := conn.PublishMsg(&nats.Msg{Subject: publishertest.Topic, Header: nats.Header{"color": {" red "}}, Data: []byte("hello")}); err != nil {
				t.Fatal(err)
			}
			consumer := start(t, config)
			for range 3 {
				told.next(t, consume.DeadLetter)
			}
			consumer.stop()
			if n := unsettled(t, broker); n != 0 {
				t.Errorf("%d messages are unsettled", n)
			}
			attempts := make(map[uuid.UUID][]int)
			for _, m := range tried.all() {
				attempts[m.ID] = append(attempts[m.ID], m.Attempt)
			}
			if got := fmt.Sprint(attempts[sent[0].ID], attempts[sent[1].ID]); got != "[1 2 3] [1]" {
				t.Errorf("attempts: %s", got)
			}
			dead := make(map[string]publishertest.Received)
			for _, letter := range letters(t, broker) {
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
		})
	}
}

// TestNothingIsGivenUp has no dead letters: an event comes again until it is handled.
func TestNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	broker, tried := ordersAndDead(t), newRecord()
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
	broker, done := ordersAndDead(t), newRecord()
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
	config.Ordered, config.Concurrency = true, 8
	config.Process.MaxDeliveries = 1000
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

// TestSlowHandler handles for longer than the stream waits, with others of the key behind, and
// with a second consumer that would be given what comes again. Nothing does.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	broker, done := ordersAndDead(t), newRecord()
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		if len(done.all()) <= 2 {
			<-time.After(1500 * time.Millisecond) // it is the time that matters
		}
		return nil
	}))
	config.AckWait = 600 * time.Millisecond
	sent := events(6, 1)
	delivered(t, open(t, broker.URL()), sent)
	first := start(t, config)
	done.await(t, atLeast(1))
	second := start(t, config)
	done.await(t, atLeast(len(sent)))
	first.stop()
	second.stop()
	for _, m := range done.all() {
		if m.Attempt != 1 {
			t.Errorf("event %s was delivered %d times", m.Headers["n"], m.Attempt)
		}
	}
	if len(done.all()) != len(sent) {
		t.Errorf("%d deliveries of %d events", len(done.all()), len(sent))
	}
}

// TestConsumeDuplicates publishes every event twice, and has one effect of each.
func TestConsumeDuplicates(t *testing.T) {
	t.Parallel()
	broker, effects, told := ordersAndDead(t), newRecord(), make(reports, 1000)
	memory, err := inboxtest.NewMemory(inbox.TTL{Processing: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	config := settings(t, broker.URL(), handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, memory, durable, m.ID, func(context.Context) error { effects.add(m); return nil })
		return err
	}))
	config.Process.Hooks = []any{told}
	conn := broker.Connect(t)
	const n = 100
	for i := range n {
		// Without Nats-Msg-Id, so that the stream keeps both.
		msg := &nats.Msg{Subject: publishertest.Topic, Header: nats.Header{"event_id": {uuid.NewString()}, "n": {fmt.Sprint(i)}}}
		for range 2 {
			if err := conn.PublishMsg(msg); err != nil {
				t.Fatal(err)
			}
		}
	}
	start(t, config)
	for range 2 * n {
		told.next(t, consume.Handled)
	}
	if counts := ids(effects.all()); len(counts) != n || len(effects.all()) != n {
		t.Errorf("%d effects of %d events", len(effects.all()), len(counts))
	}
}
