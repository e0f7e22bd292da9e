// Package publishertest is the conformance suite of publishers: every outbox.Publisher
// has to pass it.
package publishertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// Received is what arrived of a message on the other side.
type Received struct {
	// ID is the event's id.
	ID uuid.UUID
	// Payload is the message body.
	Payload []byte
	// Topic is where it arrived, and Key what orders it there; empty where the other side
	// cannot tell.
	Topic, Key string
	// Attributes are what came beside the payload; nil where it is not read back.
	Attributes map[string]string
	// ContentType is what the broker itself says the payload is; empty where it has no place of
	// its own for that.
	ContentType string
}

// Harness connects the suite to one publisher and its other side.
type Harness interface {
	// Publisher is the publisher under test.
	Publisher() outbox.Publisher
	// Received is what has arrived so far, in order of arrival where there is one.
	Received(t testing.TB) []Received
}

// Features says what a publisher promises beyond delivery.
type Features struct {
	// Ordered is set where a batch arrives in the order in which it was handed over.
	Ordered bool
	// Attributes is set where the plain attributes of package wire arrive beside the payload.
	Attributes bool
	// Keys is set where the other side can tell the event's key.
	Keys bool
	// ContentType is set where the broker has a place of its own for the content type.
	ContentType bool
	// Binary is set where payloads that are not JSON or UTF-8 arrive unchanged.
	Binary bool
	// Poison spoils a message so that the publisher fails it and no other; nil where none can
	// be. A publisher that keeps order is shown one.
	Poison func(*outbox.Message)
}

// Run runs the suite. open makes a harness with nothing received yet.
func Run(t *testing.T, features Features, open func(t *testing.T) Harness) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Harness, Features){
		"one result per message, and every message arrives": testArrives,
		"an empty batch":                            testEmpty,
		"attributes arrive as they are":             testAttributes,
		"payloads arrive as they are":               testPayloads,
		"batches published at once":                 testConcurrent,
		"acknowledged means arrived":                testAcknowledged,
		"a publisher that can be pinged answers":    testPing,
		"messages are not changed by the publisher": testUnchanged,
		"nothing of a key after its failed message": testSequencer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t), features)
		})
	}
}

// patience limits every wait for something that must happen. It is not a measure of speed.
const patience = time.Minute

// Messages makes n messages with everything filled in.
func Messages(n int) []outbox.Message {
	messages := make([]outbox.Message, n)
	for i := range messages {
		messages[i] = outbox.Message{
			Event: outbox.Event{
				ID: uuid.Must(uuid.NewV7()), Namespace: "shop", Topic: Topic, Type: "order_created",
				AggregateType: "order", AggregateID: strconv.Itoa(i), TenantID: uuid.New(), DedupeKey: fmt.Sprintf("k%d", i),
				Key: fmt.Sprintf("order/%d", i), Payload: fmt.Appendf(nil, `{"order": %d}`, i),
				Headers: map[string]string{"trace": "t1"}, ContentType: "application/json",
			},
			CreatedAt: time.Now().UTC(), Attempt: 1,
		}
	}
	return messages
}

// want fails unless exactly these messages have arrived.
func want(t *testing.T, h Harness, features Features, messages []outbox.Message) {
	t.Helper()
	received := h.Received(t)
	if len(received) != len(messages) {
		t.Fatalf("%d messages arrived, want %d", len(received), len(messages))
	}
	if !features.Ordered {
		compare := func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) }
		slices.SortFunc(received, func(a, b Received) int { return compare(a.ID, b.ID) })
		messages = slices.Clone(messages)
		slices.SortFunc(messages, func(a, b outbox.Message) int { return compare(a.ID, b.ID) })
	}
	for i := range messages {
		if received[i].ID != messages[i].ID {
			t.Fatalf("message %d is %s, want %s", i, received[i].ID, messages[i].ID)
		}
		if string(received[i].Payload) != string(messages[i].Payload) {
			t.Fatalf("message %d has payload %q, want %q", i, received[i].Payload, messages[i].Payload)
		}
	}
}

func testArrives(t *testing.T, h Harness, features Features) {
	t.Helper()
	messages := Messages(250)
	Deliver(t, h.Publisher(), messages)
	want(t, h, features, messages)
}

func testEmpty(t *testing.T, h Harness, features Features) {
	t.Helper()
	Deliver(t, h.Publisher(), nil)
	want(t, h, features, nil)
}

func testPayloads(t *testing.T, h Harness, features Features) {
	t.Helper()
	payloads := []string{
		`{}`, `{ "a" :  1.0 }`, `"<script>&\u2028"`, `{"a":"` + strings.Repeat("x", 100_000) + `"}`, `"😀 \u00e9 \/ "`, `[1,
2]`,
	}
	if features.Binary {
		payloads = append(payloads, "", "not JSON", "\x00\xff\xfe", "line\nbreak")
	}
	messages := Messages(len(payloads))
	for i, payload := range payloads {
		messages[i].Payload = []byte(payload)
	}
	Deliver(t, h.Publisher(), messages)
	want(t, h, features, messages)
}

func testAttributes(t *testing.T, h Harness, features Features) {
	t.Helper()
	if !features.Attributes {
		return
	}
	messages := Messages(5)
	messages[0].DedupeKey = "" // some brokers take no more than ten attributes
	messages[0].Headers = map[string]string{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-own": "a, b; c=\"d\" 100%", "event_id": "not the event's",
	}
	messages[1].Event = outbox.Event{ID: messages[1].ID, Topic: messages[1].Topic, Type: "bare", Payload: []byte("{}")}
	messages[2].CreatedAt = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.FixedZone("", 3600))
	messages[3].AggregateID = "caf\u00e9 \U0001F600"
	messages[4].ContentType = "text/plain; charset=utf-8"
	Deliver(t, h.Publisher(), messages)
	want(t, h, features, messages)
	received := h.Received(t)
	for i := range messages {
		at := slices.IndexFunc(received, func(r Received) bool { return r.ID == messages[i].ID })
		expected := make(map[string]string)
		for _, a := range wire.Attributes(&messages[i]) {
			expected[a.Name] = a.Value
		}
		if !maps.Equal(received[at].Attributes, expected) {
			t.Errorf("message %d has the attributes\n%q, want\n%q", i, received[at].Attributes, expected)
		}
		wantPlace(t, features, i, &received[at], &messages[i])
	}
}

// wantPlace compares what has a place of its own at the broker: topic, key and content type.
func wantPlace(t *testing.T, features Features, i int, got *Received, message *outbox.Message) {
	t.Helper()
	if got.Topic != "" && got.Topic != message.Topic {
		t.Errorf("message %d is in %q, want %q", i, got.Topic, message.Topic)
	}
	if features.Keys && got.Key != message.Key {
		t.Errorf("message %d has the key %q, want %q", i, got.Key, message.Key)
	}
	// One that the event does not have may be guessed from its payload.
	if features.ContentType && message.ContentType != "" && got.ContentType != message.ContentType {
		t.Errorf("message %d has the content type %q, want %q", i, got.ContentType, message.ContentType)
	}
}

func testConcurrent(t *testing.T, h Harness, features Features) {
	t.Helper()
	const publishers, each = 8, 50
	var all []outbox.Message
	var wg sync.WaitGroup
	failures := make(chan error, publishers*each)
	for range publishers {
		messages := Messages(each)
		all = append(all, messages...)
		wg.Go(func() {
			for _, err := range h.Publisher().Publish(t.Context(), messages) {
				if err != nil {
					failures <- err
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		t.Fatal(err)
	}
	features.Ordered = false // batches may pass each other
	want(t, h, features, all)
}

// testAcknowledged looks at the other side right after Publish has returned.
func testAcknowledged(t *testing.T, h Harness, features Features) {
	t.Helper()
	var all []outbox.Message
	for range 20 {
		messages := Messages(1)
		Deliver(t, h.Publisher(), messages)
		all = append(all, messages...)
		want(t, h, features, all)
	}
}

func testPing(t *testing.T, h Harness, _ Features) {
	t.Helper()
	pinger, ok := h.Publisher().(outbox.Pinger)
	if !ok {
		return // a publisher without one is tried with a message
	}
	if err := pinger.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func testUnchanged(t *testing.T, h Harness, _ Features) {
	t.Helper()
	messages := Messages(3)
	before := fmt.Sprintf("%+v", messages)
	Deliver(t, h.Publisher(), messages)
	if after := fmt.Sprintf("%+v", messages); after != before {
		t.Errorf("the publisher changed its messages:\n%s\n%s", before, after)
	}
}

// testSequencer has a message fail between others of its key, and one without a key.
func testSequencer(t *testing.T, h Harness, features Features) {
	t.Helper()
	sequencer, ok := h.Publisher().(outbox.Sequencer)
	if !ok || !sequencer.KeepsOrder() || features.Poison == nil {
		return // the relay sees to the order, or nothing ever fails
	}
	plan := []struct{ key, fate string }{
		{"a", "arrives"}, {"a", "fails"}, {"b", "arrives"}, {"a", "waits"},
		{"", "fails"}, {"", "arrives"}, {"b", "arrives"}, {"a", "waits"},
	}
	messages := Messages(len(plan))
	var arriving []outbox.Message
	for i := range messages {
		messages[i].Key = plan[i].key
		switch plan[i].fate {
		case "arrives":
			arriving = append(arriving, messages[i])
		case "fails":
			features.Poison(&messages[i])
		}
	}
	errs := h.Publisher().Publish(t.Context(), messages)
	if len(errs) != len(messages) {
		t.Fatalf("%d results for %d messages", len(errs), len(messages))
	}
	for i, err := range errs {
		fate := "arrives"
		if errors.Is(err, outbox.ErrNotAttempted) {
			fate = "waits"
		} else if err != nil {
			fate = "fails"
		}
		if fate != plan[i].fate {
			t.Errorf("message %d of key %q: %v; want that it %s", i, messages[i].Key, err, plan[i].fate)
		}
	}
	want(t, h, features, arriving)
}
