package consumetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// Harness connects the suite to the consumer of one broker.
type Harness interface {
	// Publish publishes with the broker's own publisher, in a format (plain or cloudevents), and
	// fails unless all is acknowledged.
	Publish(t testing.TB, format string, messages []outbox.Message)
	// Foreign writes a message to publishertest.Topic that is no event.
	Foreign(t testing.TB, payload string, attributes map[string]string)
	// Consumer makes a consumer of publishertest.Topic.
	Consumer(t testing.TB, options Options) Consumer
	// Unsettled is how many messages of the topic are not acknowledged.
	Unsettled(t testing.TB) int
	// Letters are the dead letters.
	Letters(t testing.TB) []publishertest.Received
}

// Options are of a consumer.
type Options struct {
	Process consume.Config
	// DeadLetters has it write dead letters, to a topic of the broker.
	DeadLetters bool
}

// Run runs the suite. open makes a harness with nothing published yet.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Harness){
		"every event once, in order, as it was published": testConsume("plain"),
		"the same as CloudEvents":                         testConsume("cloudevents"),
		"dead letters":                                    testDeadLetters,
		"unknown types are ignored":                       testUnknown(consume.IgnoreUnknown),
		"unknown types are dead letters":                  testUnknown(consume.DeadLetterUnknown),
		"unknown types come again":                        testUnknown(consume.RetryUnknown),
		"nothing is given up without dead letters":        testNothingIsGivenUp,
		"one effect of duplicates":                        testDuplicates,
		"a stop finishes what is in hand, and no more":    testStops,
		"an event is not acknowledged after the grace":    testGrace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// testConsume handles every event once, each key's in order, and as it was published.
func testConsume(format string) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		t.Helper()
		done, sent := NewRecord(), Events(2000, 50)
		sent[0].ContentType = "application/json"
		h.Publish(t, format, sent)
		running := Start(t, h.Consumer(t, Options{Process: Quickly(Handler(done.Handle))}))
		list := done.Await(t, len(sent))
		running.Stop()
		if n := h.Unsettled(t); n != 0 || len(done.All()) != len(sent) {
			t.Errorf("%d messages are unsettled, %d were handled", n, len(done.All()))
		}
		InOrder(t, list)
		for i := range list {
			m, want := &list[i], &sent[Number(t, &list[i])]
			if m.ID != want.ID || m.Topic != want.Topic || m.Key != want.Key || m.Type != want.Type || string(m.Payload) != string(want.Payload) ||
				m.ContentType != want.ContentType || m.Attempt != 1 || !m.CreatedAt.Equal(want.CreatedAt) || len(m.Headers) != 1 {
				t.Fatalf("got  %+v\nwant %+v", m, want)
			}
		}
	}
}

// testDeadLetters has events that fail in every delivery, that cannot be handled at all, and
// messages that are no event. All are dead letters in the end, with the reason.
func testDeadLetters(t *testing.T, h Harness) {
	t.Helper()
	tried, told := NewRecord(), make(Reports, 100)
	failure := errors.New("no stock")
	process := Quickly(Handler(func(_ context.Context, m outbox.Message) error {
		tried.Add(m)
		if m.AggregateID == "0" {
			return failure
		}
		return outbox.Terminal(failure)
	}))
	process.Hooks = []any{told}
	sent := Events(2, 2)
	h.Publish(t, "plain", sent)
	h.Foreign(t, "hello", map[string]string{"color": "red"})
	running := Start(t, h.Consumer(t, Options{Process: process, DeadLetters: true}))
	for range 3 {
		told.Next(t, consume.DeadLetter)
	}
	running.Stop()
	if n := h.Unsettled(t); n != 0 {
		t.Errorf("%d messages are unsettled", n)
	}
	attempts := make(map[uuid.UUID][]int)
	for _, m := range tried.All() {
		attempts[m.ID] = append(attempts[m.ID], m.Attempt)
	}
	if got := fmt.Sprint(attempts[sent[0].ID], attempts[sent[1].ID]); got != "[1 2 3] [1]" {
		t.Errorf("attempts: %s", got)
	}
	dead := make(map[string]publishertest.Received)
	for _, letter := range h.Letters(t) {
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

// testNothingIsGivenUp has no dead letters: an event comes again until it is handled.
func testNothingIsGivenUp(t *testing.T, h Harness) {
	t.Helper()
	tried := NewRecord()
	Start(t, h.Consumer(t, Options{Process: Quickly(Handler(func(_ context.Context, m outbox.Message) error {
		tried.Add(m)
		return outbox.Terminal(errors.New("never"))
	}))}))
	h.Publish(t, "plain", Events(1, 1))
	for i, m := range tried.Await(t, 8)[:8] {
		if m.Attempt != i+1 {
			t.Errorf("delivery %d says %d", i+1, m.Attempt)
		}
	}
}

// testDuplicates publishes every event twice, and has one effect of each.
func testDuplicates(t *testing.T, h Harness) {
	t.Helper()
	effects, told := NewRecord(), make(Reports, 1000)
	memory, err := inboxtest.NewMemory(inbox.TTL{})
	if err != nil {
		t.Fatal(err)
	}
	process := Quickly(Handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, memory, "billing", m.ID, func(context.Context) error { effects.Add(m); return nil })
		return err
	}))
	process.Hooks = []any{told}
	const n = 100
	sent := Events(n, 10)
	h.Publish(t, "plain", sent)
	for i := range sent {
		sent[i].ReplayedAt = time.Now() // or the broker's own guard would take only one
	}
	h.Publish(t, "plain", sent)
	Start(t, h.Consumer(t, Options{Process: process}))
	for range 2 * n {
		told.Next(t, consume.Handled)
	}
	if counts := Counts(effects.All()); len(counts) != n || len(effects.All()) != n {
		t.Errorf("%d effects of %d events", len(effects.All()), len(counts))
	}
}

// testStops ends a consumer while it handles some events: it finishes and acknowledges those,
// and the next consumer has the rest, at once.
func testStops(t *testing.T, h Harness) {
	t.Helper()
	const inHand = 4
	first, second, sent := NewRecord(), NewRecord(), Events(40, 40)
	h.Publish(t, "plain", sent)
	begun, release := make(chan struct{}, len(sent)), make(chan struct{})
	running := Start(t, h.Consumer(t, Options{Process: atOnce(inHand, func(_ context.Context, m outbox.Message) error {
		begun <- struct{}{}
		<-release
		first.Add(m)
		return nil
	})}))
	for range inHand {
		<-begun
	}
	running.Cancel()
	close(release)
	running.Stop()
	if n := h.Unsettled(t); len(first.All()) != inHand || n != len(sent)-inHand {
		t.Fatalf("%d were handled, %d are unsettled", len(first.All()), n)
	}
	running = Start(t, h.Consumer(t, Options{Process: atOnce(inHand, second.Handle)}))
	second.Await(t, len(sent)-inHand)
	running.Stop()
	counts := Counts(append(first.All(), second.All()...))
	for i := range sent {
		if counts[sent[i].ID] != 1 {
			t.Errorf("event %d was handled %d times", i, counts[sent[i].ID])
		}
	}
}

// atOnce has so many handlers run at once.
func atOnce(n int, handle Handler) consume.Config {
	process := Quickly(handle)
	process.Concurrency = n
	return process
}

// testGrace has a handler that does not end until it is told: the event is not acknowledged.
func testGrace(t *testing.T, h Harness) {
	t.Helper()
	h.Publish(t, "plain", Events(1, 1))
	begun := make(chan struct{})
	process := Quickly(Handler(func(ctx context.Context, _ outbox.Message) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}))
	process.Grace = 50 * time.Millisecond
	running := Start(t, h.Consumer(t, Options{Process: process}))
	<-begun
	running.Stop()
	if n := h.Unsettled(t); n != 1 {
		t.Errorf("%d events are unsettled", n)
	}
}
