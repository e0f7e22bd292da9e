//go:build unix

// Package endtoend runs the program from PostgreSQL to every broker and reads back, with the
// broker's own client, what arrived.
package endtoend

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const (
	healthyEvents = 10_000
	outageEvents  = 20_000
	keys          = 500
	// memoryCeiling is what a relay's process may hold, whatever its broker does.
	memoryCeiling = 128 << 20
)

func TestMain(m *testing.M) {
	pgtest.Main(m,
		// Pub/Sub's client looks only every ten seconds whether this one is to end,
		goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler"),
		// and starts this one with the program.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// TestHealthy has nothing go wrong: every event arrives once, as it was emitted, and the
// events of a key in their order.
func TestHealthy(t *testing.T) {
	t.Parallel()
	program := program(t)
	for _, b := range brokers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, program, b.open(t))
			if err := r.emit(healthyEvents); err != nil {
				t.Fatal(err)
			}
			relay := r.relay()
			r.awaitDelivered(relay, healthyEvents)
			r.stop(relay)
			r.check(b, 1)
		})
	}
}

// TestOutage takes the broker away in the middle of the events and brings it back: nothing
// is lost, and nothing is dead, however long it was away.
func TestOutage(t *testing.T) {
	t.Parallel()
	program := program(t)
	for _, b := range brokers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			server := b.open(t)
			r := newRun(t, program, server)
			relay := r.relay()
			emitted := make(chan error, 1)
			go func() { emitted <- r.emit(outageEvents) }()
			r.awaitDelivered(relay, outageEvents/10)
			server.Stop(t)
			relay.AwaitLog(t, "the route is closed")
			if err := <-emitted; err != nil {
				t.Fatal(err)
			}
			before := r.delivered()
			if before == outageEvents {
				t.Fatal("the broker was not missed: every event was there before it went")
			}
			server.Start(t)
			r.awaitDelivered(relay, outageEvents)
			r.stop(relay)
			// What was under way when the broker went may have arrived unacknowledged, and again
			// while it came back.
			r.check(b, 4)
		})
	}
}

// check reads back what arrived and holds it against what was emitted. An event may arrive up
// to most times; first arrivals count for the order.
func (r *run) check(b broker, most int) {
	r.Helper()
	times := make(map[uuid.UUID]int, len(r.emitted))
	last := make(map[string]int)
	for _, got := range r.broker.Received(r.T) {
		want, ok := r.emitted[got.ID]
		if times[got.ID]++; !ok || times[got.ID] > most {
			r.Fatalf("event %s arrived %d times", got.ID, times[got.ID])
		}
		if times[got.ID] > 1 {
			continue
		}
		r.compare(want, got)
		if number := want.number; b.unordered {
			continue
		} else if before, seen := last[want.Key]; seen && number < before {
			r.Fatalf("of key %s event %d came after event %d", want.Key, number, before)
		} else {
			last[want.Key] = number
		}
	}
	if len(times) != len(r.emitted) {
		r.Fatalf("%d of %d events arrived", len(times), len(r.emitted))
	}
	repeated := 0
	for _, n := range times {
		repeated += n - 1
	}
	r.Logf("%d events, %d of them twice; the relay's process had at most %d MiB", len(times), repeated, r.peak>>20)
	if r.peak > memoryCeiling {
		r.Errorf("the relay's process had %d MiB, more than %d", r.peak>>20, memoryCeiling>>20)
	}
}

func (r *run) compare(want *event, got publishertest.Received) {
	r.Helper()
	if string(got.Payload) != string(want.Payload) {
		r.Fatalf("event %s arrived with the payload %.200q, want %.200q", got.ID, got.Payload, want.Payload)
	}
	attributes := make(map[string]string)
	for _, a := range wire.Attributes(&outbox.Message{Event: want.Event, CreatedAt: want.created}) {
		attributes[a.Name] = a.Value
	}
	if !maps.Equal(got.Attributes, attributes) {
		r.Fatalf("event %s arrived with the attributes\n%q, want\n%q", got.ID, got.Attributes, attributes)
	}
	if got.Topic != want.Topic || got.Key != "" && got.Key != want.Key {
		r.Fatalf("event %s arrived at %q with the key %q, want %q and %q", got.ID, got.Topic, got.Key, want.Topic, want.Key)
	}
}

// event is what was emitted, with its place among all.
type event struct {
	outbox.Event
	number  int
	created time.Time
}

// newEvent makes the n-th event. Every one is different, and some are odd.
func newEvent(n int) outbox.Event {
	payload := fmt.Appendf(nil, "{ \"n\" : %d, \"text\": \"\u00e9 \\u00e9 <&> %0*d\" }", n, n%300, n)
	contentType := "application/json"
	if n%10 == 0 {
		payload, contentType = append([]byte{0, 0xff, '\n'}, payload...), "application/octet-stream"
	}
	return outbox.Event{
		Topic: publishertest.Topic, Type: "order_changed", AggregateType: "order", AggregateID: fmt.Sprint(n % keys),
		TenantID: uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, n%7)), Payload: payload, ContentType: contentType,
		Headers: map[string]string{"traceparent": fmt.Sprintf("00-%032x-%016x-01", n+1, n+1), "x-own": "a b"},
	}
}
