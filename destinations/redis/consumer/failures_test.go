package consumer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// TestConsumeRestart stops Redis in the middle: nothing is lost, and the order holds. Duplicates may
// come, where an acknowledgement was on its way, and an inbox tells them.
func TestConsumeRestart(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(1000, 20), consumetest.NewRecord()
	send(t, broker, messages)
	memory, err := inboxtest.NewMemory(inbox.TTL{})
	if err != nil {
		t.Fatal(err)
	}
	log := consumetest.NewLog()
	start(t, broker, consumer.Config{Process: consume.Config{Logger: log.Logger(), Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, memory, testGroup, m.ID, func(context.Context) error {
			handled.Add(m)
			return nil
		})
		return err
	})}})
	for n := 200; n <= 600; n += 200 {
		handled.Await(t, n)
		broker.Stop(t)
		broker.Start(t)
	}
	got := handled.Await(t, len(messages))
	awaitPending(t, broker, 0)
	if len(handled.All()) != len(messages) {
		t.Errorf("%d effects, want %d", len(handled.All()), len(messages))
	}
	ordered(t, messages, got)
	if text := log.String(); strings.Count(text, "away") > 3 || strings.Count(text, "away") != strings.Count(text, "consuming again") {
		t.Errorf("it logged\n%s", text)
	}
}

// TestConsumeLostAnswer has Redis hand out entries whose way to the consumer is cut: they come when it
// is back, before those that are newer.
func TestConsumeLostAnswer(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(21, 1), consumetest.NewRecord()
	proxy := tcpproxy.New(t, broker.Address())
	send(t, broker, messages[:1])
	startAt(t, "redis://"+proxy.Address(), consumer.Config{Name: "first", Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
	handled.Await(t, 1)
	awaitPending(t, broker, 0)
	proxy.Cut()
	send(t, broker, messages[1:])
	read := &goredis.XReadGroupArgs{Group: testGroup, Consumer: "first", Streams: []string{publishertest.Topic, ">"}, Count: 10}
	if err := broker.Client().XReadGroup(t.Context(), read).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Restore(t)
	ordered(t, messages, handled.Await(t, len(messages)))
	awaitPending(t, broker, 0)
}

// TestConsumeFlushed has the stream and its group disappear.
func TestConsumeFlushed(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	start(t, broker, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
	for n := 1; n <= 3; n++ {
		send(t, broker, publishertest.Messages(1))
		handled.Await(t, n)
		if err := broker.Client().FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		broker.Create(t, publishertest.Topic)
	}
}

// TestConsumeSlowly has handlers that take long: Redis is given signs of life of every entry in hand,
// those that wait for others of their key among them, so that nobody takes over.
func TestConsumeSlowly(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(6, 2), consumetest.NewRecord()
	send(t, broker, messages)
	finished := make(chan struct{})
	finish := sync.OnceFunc(func() { close(finished) })
	start(t, broker, consumer.Config{MinIdle: 2 * time.Second, Process: consume.Config{Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled.Add(m)
		<-finished
		return nil
	})}})
	t.Cleanup(finish) // also when it fails: the consumer's end waits for its handlers
	handled.Await(t, 2)
	awaitPending(t, broker, 6)
	idle, signs := make(map[string]time.Duration), make(map[string]int)
	await.Until(t, "two signs of life of each entry", func() bool {
		ask := &goredis.XPendingExtArgs{Stream: publishertest.Topic, Group: testGroup, Start: "-", End: "+", Count: 10}
		for _, entry := range broker.Client().XPendingExt(t.Context(), ask).Val() {
			if entry.Idle < idle[entry.ID] {
				signs[entry.ID]++
			}
			idle[entry.ID] = entry.Idle
		}
		enough := 0
		for _, n := range signs {
			if n >= 2 {
				enough++
			}
		}
		return enough == len(messages)
	})
	finish()
	handled.Await(t, 6)
	awaitPending(t, broker, 0)
	if got := handled.All(); len(got) != 6 || slices.ContainsFunc(got, func(m outbox.Message) bool { return m.Attempt != 1 }) {
		t.Errorf("%d deliveries of 6 messages", len(got))
	}
}

// TestConsumeTakenOver has a consumer cut off for longer than MinIdle. Another takes over, and the first
// is told when it is back.
func TestConsumeTakenOver(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, publishertest.Messages(1))
	told := make(chan error, 1)
	stop := start(t, broker, consumer.Config{MinIdle: time.Second, Process: consume.Config{Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		handled.Add(m)
		<-ctx.Done()
		told <- context.Cause(ctx)
		return ctx.Err()
	})}})
	handled.Await(t, 1)
	// What another consumer does, without waiting for MinIdle.
	entries := broker.Client().XPendingExt(t.Context(), &goredis.XPendingExtArgs{Stream: publishertest.Topic, Group: testGroup, Start: "-", End: "+", Count: 1}).Val()
	claim := &goredis.XClaimArgs{Stream: publishertest.Topic, Group: testGroup, Consumer: "another", Messages: []string{entries[0].ID}}
	if err := broker.Client().XClaim(t.Context(), claim).Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err == nil || !strings.Contains(err.Error(), "another consumer") {
		t.Errorf("the handler was told %v", err)
	}
	stop()
	awaitPending(t, broker, 1)
	if consumers := broker.Client().XInfoConsumers(t.Context(), publishertest.Topic, testGroup).Val(); len(consumers) != 1 || consumers[0].Pending != 1 {
		t.Errorf("the entry is not the other one's: %+v", consumers)
	}
}

// TestConsumeDuplicates publishes every event three times: an inbox lets each have one effect.
func TestConsumeDuplicates(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(100, 10), consumetest.NewRecord()
	in := openInbox(t, broker.URL())
	for range 3 {
		send(t, broker, messages)
	}
	var effects atomic.Int32
	start(t, broker, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, in, testGroup, m.ID, func(context.Context) error {
			effects.Add(1)
			return nil
		})
		handled.Add(m)
		return err
	})}})
	handled.Await(t, 300)
	awaitPending(t, broker, 0)
	if n := effects.Load(); n != 100 {
		t.Errorf("%d effects, want 100", n)
	}
}

// TestConsumeTrimmed has entries trimmed while one is in hand and another waits for a dead consumer:
// the first is handled, and the loss of the second is told.
func TestConsumeTrimmed(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(2, 1), consumetest.NewRecord()
	if err := broker.Client().XGroupCreate(t.Context(), publishertest.Topic, testGroup, "0").Err(); err != nil {
		t.Fatal(err)
	}
	send(t, broker, messages[:1])
	read := &goredis.XReadGroupArgs{Group: testGroup, Consumer: "dead", Streams: []string{publishertest.Topic, ">"}, Count: 1}
	if err := broker.Client().XReadGroup(t.Context(), read).Err(); err != nil {
		t.Fatal(err)
	}
	send(t, broker, messages[1:])
	log := consumetest.NewLog()
	start(t, broker, consumer.Config{MinIdle: time.Second, Process: consume.Config{Logger: log.Logger(), Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled.Add(m)
		if m.Attempt == 1 {
			if err := broker.Client().XTrimMaxLen(t.Context(), publishertest.Topic, 0).Err(); err != nil {
				t.Error(err)
			}
			return errors.New("not yet")
		}
		return nil
	})}})
	if got := handled.Await(t, 2); got[1].ID != messages[1].ID || got[1].Attempt != 2 {
		t.Errorf("handled %+v", got)
	}
	awaitPending(t, broker, 0)
	log.Await(t, "trimmed")
}

// TestConsumeBoundedly has more keys than may be handled: at most so many are, and a key that fails
// does not take a place from others.
func TestConsumeBoundedly(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(200, 100), consumetest.NewRecord()
	send(t, broker, messages)
	var running, most atomic.Int32
	stuck := messages[0].ID
	start(t, broker, consumer.Config{Process: consume.Config{
		Concurrency: 3,
		Retry:       outbox.RetryPolicy{Base: time.Hour, Max: time.Hour},
		Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
			defer running.Add(-1)
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			handled.Add(m)
			if m.ID == stuck {
				return errors.New("it fails")
			}
			return nil
		}),
	}})
	handled.Await(t, 199)
	awaitPending(t, broker, 2) // it, and the next one of its key
	if n := most.Load(); n > 3 {
		t.Errorf("%d were handled at once", n)
	}
}

// TestConsumeAfterDead takes over what a consumer that is gone had, and counts that delivery.
func TestConsumeAfterDead(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(50, 5), consumetest.NewRecord()
	if err := broker.Client().XGroupCreate(t.Context(), publishertest.Topic, testGroup, "0").Err(); err != nil {
		t.Fatal(err)
	}
	send(t, broker, messages)
	read := &goredis.XReadGroupArgs{Group: testGroup, Consumer: "dead", Streams: []string{publishertest.Topic, ">"}}
	if err := broker.Client().XReadGroup(t.Context(), read).Err(); err != nil {
		t.Fatal(err)
	}
	awaitPending(t, broker, 50)
	start(t, broker, consumer.Config{MinIdle: time.Second, Process: consume.Config{Concurrency: 4, Handlers: consumetest.Handler(handled.Handle)}})
	got := handled.Await(t, 50)
	awaitPending(t, broker, 0)
	ordered(t, messages, got)
	if len(got) != 50 || slices.ContainsFunc(got, func(m outbox.Message) bool { return m.Attempt != 2 || m.ID == uuid.Nil }) {
		t.Errorf("%d deliveries; the first is %+v", len(got), got[0])
	}
}
