package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
)

// ordered is a store that keeps order: it hands out its batches, one per claim.
type ordered struct {
	mu      sync.Mutex
	batches [][]outbox.Message
	out     int
	left    chan struct{} // closed by Leave, with nothing out
	settled chan []outbox.Outcome
}

func newOrdered(batches ...[]outbox.Message) *ordered {
	return &ordered{batches: batches, left: make(chan struct{}), settled: make(chan []outbox.Outcome, len(batches))}
}

// keyed returns messages with these keys, in order; the payload tells the messages of a key apart.
func keyed(keys ...string) []outbox.Message {
	var list []outbox.Message
	count := make(map[string]int)
	for _, key := range keys {
		count[key]++
		message := outbox.Message{Attempt: 1}
		message.ID, message.Key, message.Type, message.Topic, message.MaxAttempts = uuid.New(), key, "made", "orders", 3
		message.Payload = []byte(key + strings.Repeat("'", count[key]-1))
		list = append(list, message)
	}
	return list
}

func (s *ordered) Claim(context.Context, outbox.ClaimRequest) (outbox.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		return &orderedBatch{}, nil
	}
	batch := &orderedBatch{store: s, messages: s.batches[0]}
	s.batches = s.batches[1:]
	s.out++
	return batch, nil
}

func (s *ordered) Sweep(context.Context) (int64, error)               { return 0, nil }
func (s *ordered) Purge(context.Context, outbox.Purge) (int64, error) { return 0, nil }
func (s *ordered) Stats(context.Context) (outbox.Stats, error)        { return outbox.Stats{}, nil }
func (s *ordered) Traits() outbox.Traits {
	return outbox.Traits{Name: "ordered", Lease: time.Minute, Backoff: true, InOrder: true}
}

func (s *ordered) Leave(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out > 0 {
		return errors.New("left with batches out")
	}
	close(s.left)
	return nil
}

type orderedBatch struct {
	store    *ordered
	messages []outbox.Message
}

func (b *orderedBatch) Messages() []outbox.Message  { return b.messages }
func (b *orderedBatch) Exhausted() []outbox.Message { return nil }
func (b *orderedBatch) Reclaimed() int              { return 0 }
func (b *orderedBatch) Renew(context.Context) error { return nil }

func (b *orderedBatch) Settle(_ context.Context, outcomes []outbox.Outcome) ([]uuid.UUID, error) {
	if b.store != nil {
		b.store.settled <- slices.Clone(outcomes)
	}
	return nil, nil
}

func (b *orderedBatch) Abandon() {
	if b.store == nil {
		return
	}
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.store.out--
}

// scripted is a publisher that answers as told and records the messages of each call.
type scripted struct {
	answer func(message outbox.Message) error
	mu     sync.Mutex
	calls  []string
}

func (p *scripted) Publish(_ context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	var names []string
	for i, message := range messages {
		names = append(names, string(message.Payload))
		if p.answer != nil {
			errs[i] = p.answer(message)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, strings.Join(names, " "))
	return errs
}

// handOver is a publisher that is a function.
type handOver func(ctx context.Context, messages []outbox.Message) []error

func (h handOver) Publish(ctx context.Context, messages []outbox.Message) []error {
	return h(ctx, messages)
}

// sequencer is a publisher that keeps the order of keys itself.
type sequencer struct{ *scripted }

func (sequencer) KeepsOrder() bool { return true }

// refuse fails one message.
func refuse(name string, err error) func(outbox.Message) error {
	return func(message outbox.Message) error {
		if string(message.Payload) == name {
			return err
		}
		return nil
	}
}

// newOrderedRelay returns a relay that logs nothing and polls all the time, unless config says otherwise.
func newOrderedRelay(t *testing.T, config outbox.RelayConfig) *outbox.Relay {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.Poll = max(config.Poll, time.Millisecond)
	relay, err := outbox.NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	return relay
}

func startOrdered(t *testing.T, config outbox.RelayConfig) *outbox.Relay {
	t.Helper()
	relay := newOrderedRelay(t, config)
	if err := relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outboxtest.Stop(t, relay) })
	return relay
}

// kinds returns the outcomes in words.
func kinds(outcomes []outbox.Outcome) string {
	var list []string
	for _, outcome := range outcomes {
		list = append(list, outcome.Kind.String())
	}
	return strings.Join(list, " ")
}

// TestOrderInABatch checks the outcomes of a batch in which one message fails.
func TestOrderInABatch(t *testing.T) {
	t.Parallel()
	down := outbox.Unavailable(errors.New("away"))
	for _, c := range []struct {
		name      string
		answer    func(outbox.Message) error
		sequencer bool
		calls     []string
		outcomes  string
	}{
		{
			name:     "one of a key at a time",
			calls:    []string{"a b c", "a' b'", "a''"},
			outcomes: "delivered delivered delivered delivered delivered delivered",
		},
		{
			name: "none after a failed one", answer: refuse("a'", errors.New("no")),
			calls:    []string{"a b c", "a' b'"},
			outcomes: "delivered failed delivered delivered released delivered",
		},
		{
			name: "none after a dead one", answer: refuse("a", outbox.Terminal(errors.New("never"))),
			calls:    []string{"a b c", "b'"},
			outcomes: "dead released delivered delivered released delivered",
		},
		{
			name: "none when the broker is away", answer: refuse("b", down),
			calls:    []string{"a b c"},
			outcomes: "delivered released released delivered released released",
		},
		{
			name: "whole batches for a publisher that keeps order", sequencer: true,
			calls:    []string{"a a' b c a'' b'"},
			outcomes: "delivered delivered delivered delivered delivered delivered",
		},
		{
			name: "what it did not attempt is released", sequencer: true, answer: refuse("a''", outbox.ErrNotAttempted),
			calls:    []string{"a a' b c a'' b'"},
			outcomes: "delivered delivered delivered delivered released delivered",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, publisher := newOrdered(keyed("a", "a", "b", "c", "a", "b")), &scripted{answer: c.answer}
			config := outbox.RelayConfig{Store: store, Publisher: publisher}
			if c.sequencer {
				config.Publisher = sequencer{publisher}
			}
			relay := startOrdered(t, config)
			outcomes := kinds(<-store.settled)
			outboxtest.Stop(t, relay)
			if outcomes != c.outcomes {
				t.Errorf("the outcomes are %s, want %s", outcomes, c.outcomes)
			}
			if !slices.Equal(publisher.calls, c.calls) {
				t.Errorf("the publisher was given %q, want %q", publisher.calls, c.calls)
			}
		})
	}
}

// TestOrderBehindPanic lets the publisher panic at the first of two events of a key: the second does not overtake
// it, whether the relay or the publisher keeps the order.
func TestOrderBehindPanic(t *testing.T) {
	t.Parallel()
	for name, keepsOrder := range map[string]bool{"the relay keeps order": false, "the publisher keeps order": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newOrdered(keyed("a", "a", "b", "a", "b"))
			publisher := &scripted{answer: func(message outbox.Message) error {
				if string(message.Payload) == "a'" {
					panic("cannot bear this event")
				}
				return nil
			}}
			config := outbox.RelayConfig{Store: store, Publisher: publisher}
			if keepsOrder {
				config.Publisher = sequencer{publisher}
			}
			startOrdered(t, config)
			if got, want := kinds(<-store.settled), "delivered failed delivered released delivered"; got != want {
				t.Errorf("the outcomes are %s, want %s", got, want)
			}
		})
	}
}

// TestTopic checks the topic of an event: the registry's, else its own, else the default.
func TestTopic(t *testing.T) {
	t.Parallel()
	registry := outbox.Registry{"made": {Topic: "registered"}, "noted": {}}
	for _, c := range []struct {
		name             string
		registry         outbox.Registry
		kind, own, topic string
	}{
		{"its own", nil, "made", "own", "own"},
		{"the default", nil, "made", "", "default"},
		{"the registry's", registry, "made", "own", "registered"},
		{"its own, though registered", registry, "noted", "own", "own"},
		{"the default, though registered", registry, "noted", "", "default"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			messages := keyed("a")
			messages[0].Type, messages[0].Topic, messages[0].Payload = c.kind, c.own, []byte("{}")
			store, topics := newOrdered(messages), make(chan string, 1)
			startOrdered(t, outbox.RelayConfig{Store: store, Registry: c.registry, DefaultTopic: "default", Publisher: &scripted{
				answer: func(message outbox.Message) error { topics <- message.Topic; return nil },
			}})
			if topic := <-topics; topic != c.topic {
				t.Errorf("it was published to %q, want %q", topic, c.topic)
			}
		})
	}
}

// TestOrderBehindRefused lets the registry refuse the first of two events: the store, not the relay, decides
// whether the second may overtake it.
func TestOrderBehindRefused(t *testing.T) {
	t.Parallel()
	for _, keepsOrder := range []bool{false, true} {
		messages := keyed("a", "a", "b")
		messages[0].Type = "unknown"
		for i := range messages {
			messages[i].Payload, messages[i].AggregateID = []byte("{}"), "1"
		}
		store, publisher := newOrdered(messages), &scripted{}
		config := outbox.RelayConfig{Store: store, Publisher: publisher, Registry: outbox.Registry{"made": {Topic: "orders"}}}
		if keepsOrder {
			config.Publisher = sequencer{publisher}
		}
		relay := startOrdered(t, config)
		outcomes := <-store.settled
		if got := kinds(outcomes); got != "dead released delivered" {
			t.Errorf("the outcomes are %s", got)
		}
		if refused := outcomes[0]; refused.Reason != outbox.ReasonUnknownType || !refused.Uncounted {
			t.Errorf("the refused event is %+v, want it uncounted: nobody tried to publish it", refused)
		}
		outboxtest.Stop(t, relay)
	}
}

// TestNoOrderWithoutAKey lets a message without a key be refused, or panic: other messages without a key do not
// wait for it.
func TestNoOrderWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registry outbox.Registry
		answer   func(outbox.Message) error
		want     string
	}{
		"refused": {outbox.Registry{"made": {Topic: "orders"}}, nil, "dead delivered delivered"},
		"panics": {nil, func(message outbox.Message) error {
			if message.Type == "unknown" {
				panic("cannot bear this event")
			}
			return nil
		}, "failed delivered delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := keyed("", "", "")
			messages[0].Type = "unknown"
			for i := range messages {
				messages[i].Payload = []byte("{}")
			}
			store := newOrdered(messages)
			startOrdered(t, outbox.RelayConfig{Store: store, Publisher: &scripted{answer: c.answer}, Registry: c.registry})
			if got := kinds(<-store.settled); got != c.want {
				t.Errorf("the outcomes are %s, want %s", got, c.want)
			}
		})
	}
}

// TestOrderBehindInFlight claims a batch again, with one more event, while the first claim is still being
// published. That event must not overtake the others, and no event is published twice at once, however often it is
// claimed.
func TestOrderBehindInFlight(t *testing.T) {
	t.Parallel()
	messages := keyed("a", "a")
	store := newOrdered(messages[:1], messages, messages)
	first := make(chan struct{})
	var given atomic.Int64
	publisher := &scripted{answer: func(message outbox.Message) error {
		if message.ID == messages[0].ID && given.Add(1) == 1 {
			<-first
		}
		return nil
	}}
	relay := startOrdered(t, outbox.RelayConfig{Store: store, Publisher: publisher, Concurrency: 2})
	for _, claim := range []string{"second", "third"} {
		if got := kinds(<-store.settled); got != "released released" {
			t.Errorf("the outcomes of the %s claim are %s", claim, got)
		}
	}
	close(first)
	if got := kinds(<-store.settled); got != "delivered" {
		t.Errorf("the outcomes of the first claim are %s", got)
	}
	outboxtest.Stop(t, relay)
	if want := []string{"a"}; !slices.Equal(publisher.calls, want) {
		t.Errorf("the publisher was given %q, want %q", publisher.calls, want)
	}
}

// TestLeaveAtStop checks that the relay leaves the store after everything is settled.
func TestLeaveAtStop(t *testing.T) {
	t.Parallel()
	store := newOrdered(keyed("a", "b"), keyed("a"))
	relay := startOrdered(t, outbox.RelayConfig{Store: store, Publisher: &scripted{}})
	<-store.settled
	select {
	case <-store.left:
		t.Error("the store was left while the relay runs")
	default:
	}
	outboxtest.Stop(t, relay)
	<-store.left
}
