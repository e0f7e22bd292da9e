package redisinbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// counted is an effect that counts itself.
func counted(effects *int) func(context.Context) error {
	return func(context.Context) error { *effects++; return nil }
}

// deliver hands an event to the inbox until it is handled, as redelivery does.
func deliver(t *testing.T, in inbox.Inbox, event uuid.UUID, handler func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, err := inbox.Handle(ctx, in, inboxConsumer, event, handler)
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// refused fails unless the inbox says that its store is away, in all its calls.
func refused(t *testing.T, in *redisinbox.Inbox) {
	t.Helper()
	ran, err := inbox.Handle(t.Context(), in, inboxConsumer, uuid.New(), func(context.Context) error {
		t.Error("a handler ran without a claim")
		return nil
	})
	publishertest.Fails(t, err, outbox.ClassUnavailable, "redis: taking the event")
	processed, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, uuid.New(), time.Hour)
	publishertest.Fails(t, err, outbox.ClassUnavailable, "redis: taking the event")
	if ran || processed || errors.Is(err, inbox.ErrDone) || errors.Is(err, inbox.ErrInProgress) {
		t.Errorf("a Redis that is away answered: handled %t, processed %t", ran, processed)
	}
	publishertest.Fails(t, in.Delete(t.Context(), inboxConsumer, uuid.New()), outbox.ClassUnavailable, "redis: forgetting the event")
	publishertest.Fails(t, in.Ping(t.Context()), outbox.ClassUnavailable, "redis: asking whether it takes keys")
}

// TestInboxFlushed empties Redis in the middle of a handler, and after it. The handler is told, and
// what was forgotten is handled again: an effect more, but never one less.
func TestInboxFlushed(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{TTL: inbox.TTL{Processing: 4 * time.Second}})
	_, err := inbox.Handle(t.Context(), in, inboxConsumer, event, func(ctx context.Context) error {
		if err := broker.Client().FlushAll(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, inbox.ErrLost) {
		t.Errorf("%v, want %v", err, inbox.ErrLost)
	}
	effects := 0
	for want := 1; want <= 2; want++ {
		for range 2 {
			deliver(t, in, event, counted(&effects))
		}
		if effects != want {
			t.Errorf("%d effects, want %d", effects, want)
		}
		if err := errors.Join(broker.Client().FlushAll(t.Context()).Err(), broker.Client().ScriptFlush(t.Context()).Err()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInboxRestart stops Redis before, in and after a handler.
func TestInboxRestart(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{})
	broker.Stop(t)
	refused(t, in)
	broker.Start(t)
	effects, started := 0, make(chan struct{})
	_, err := inbox.Handle(t.Context(), in, inboxConsumer, event, func(context.Context) error {
		effects++
		broker.Stop(t)
		time.AfterFunc(300*time.Millisecond, func() { // Finish tries until then
			defer close(started)
			broker.Start(t)
		})
		return nil
	})
	<-started
	if err != nil {
		t.Fatal(err)
	}
	broker.Stop(t)
	refused(t, in)
	broker.Start(t)
	deliver(t, in, event, counted(&effects))
	if effects != 1 {
		t.Errorf("%d effects", effects)
	}
}

// TestInboxEvicted has a Redis that evicts. What it forgets is handled again, and nothing is lost.
func TestInboxEvicted(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random")
	in := openInbox(t, broker.URL(), redisinbox.Config{})
	events := make([]uuid.UUID, 200)
	effects := make([]int, len(events))
	filler := strings.Repeat("x", 10_000)
	for range 2 {
		for i := range events {
			if events[i] == uuid.Nil {
				events[i] = uuid.New()
			}
			if err := broker.Client().Set(t.Context(), "filler:"+uuid.NewString(), filler, 0).Err(); err != nil {
				t.Fatal(err)
			}
			deliver(t, in, events[i], counted(&effects[i]))
		}
	}
	again := 0
	for i, n := range effects {
		if n < 1 || n > 2 {
			t.Errorf("event %d had %d effects", i, n)
		}
		again += n - 1
	}
	if again == 0 {
		t.Error("nothing was evicted")
	}
}

// TestInboxFull has a Redis that is full and evicts nothing: an error, until there is room.
func TestInboxFull(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{})
	full := func(limit string) {
		if err := broker.Client().ConfigSet(context.Background(), "maxmemory", limit).Err(); err != nil {
			t.Error(err)
		}
	}
	full("1")
	_, err := in.Begin(t.Context(), inboxConsumer, event)
	publishertest.Fails(t, err, outbox.ClassUnavailable, "OOM")
	full("0")
	failure, effects := errors.New("the effect failed"), 0
	_, err = inbox.Handle(t.Context(), in, inboxConsumer, event, func(context.Context) error { full("1"); return failure })
	if !errors.Is(err, failure) || errors.Is(err, inbox.ErrLost) {
		t.Errorf("%v, want %v", err, failure)
	}
	full("0")
	_, err = inbox.Handle(t.Context(), in, inboxConsumer, event, func(context.Context) error {
		effects++
		full("1")
		time.AfterFunc(300*time.Millisecond, func() { full("0") })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	deliver(t, in, event, counted(&effects))
	if effects != 1 {
		t.Errorf("%d effects", effects)
	}
}

// TestInboxBlackhole has a Redis that takes everything and answers nothing: each call ends in
// time, and what it has taken nevertheless blocks an event no longer than the processing TTL.
func TestInboxBlackhole(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{TTL: inbox.TTL{Processing: 4 * time.Second}})
	thaw := broker.Freeze(t)
	_, err := in.Begin(t.Context(), inboxConsumer, event)
	publishertest.Fails(t, err, outbox.ClassUnavailable, "taking the event")
	thaw()
	effects := 0
	deliver(t, in, event, counted(&effects))
	deliver(t, in, event, counted(&effects))
	if effects != 1 {
		t.Errorf("%d effects", effects)
	}
	// In the middle of a handler: its claim is lost, and it is told.
	event, effects = uuid.New(), 0
	_, err = inbox.Handle(t.Context(), in, inboxConsumer, event, func(ctx context.Context) error {
		thaw = broker.Freeze(t)
		<-ctx.Done()
		thaw()
		return ctx.Err()
	})
	if !errors.Is(err, inbox.ErrLost) {
		t.Errorf("%v, want %v", err, inbox.ErrLost)
	}
	deliver(t, in, event, counted(&effects))
	if effects != 1 {
		t.Errorf("%d effects", effects)
	}
}

// TestMarkWithoutAnswer marks an event while Redis stands still, and hears nothing. The mark is made
// nevertheless, and is taken back: the event is not handled yet.
func TestMarkWithoutAnswer(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{})
	thaw := broker.Freeze(t)
	thawed := make(chan struct{})
	time.AfterFunc(500*time.Millisecond, func() {
		defer close(thawed)
		thaw()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := in.CheckAndMarkProcessed(ctx, inboxConsumer, event, time.Hour)
	publishertest.Fails(t, err, outbox.ClassUnavailable, "taking the event")
	<-thawed
	if processed, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, time.Hour); processed || err != nil {
		t.Errorf("an event that nobody handled: processed %t, %v", processed, err)
	}
}

// TestInboxCut breaks the connections between begin and finish: the claim is ours all the same.
func TestInboxCut(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	proxy := tcpproxy.New(t, broker.Address())
	in := openInbox(t, "redis://"+proxy.Address(), redisinbox.Config{})
	effects := 0
	for range 2 {
		deliver(t, in, event, func(context.Context) error { effects++; proxy.Break(); return nil })
	}
	if effects != 1 {
		t.Errorf("%d effects", effects)
	}
	proxy.Cut()
	refused(t, in)
}

// TestInboxSecret sees no password in an error.
func TestInboxSecret(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	in := openInbox(t, strings.Replace(broker.URL(), "//", "//app:s3cret@", 1), redisinbox.Config{})
	_, err := in.Begin(t.Context(), inboxConsumer, uuid.New())
	publishertest.Fails(t, err, outbox.ClassUnavailable, "WRONGPASS")
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the password shows: %v", err)
	}
}

// A Redis that is full answers, and takes no key: a ping says so, in its words. It leaves nothing behind where there is room.
func TestInboxPingOfAFullRedis(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	in := openInbox(t, broker.URL(), redisinbox.Config{})
	fill := func(limit string) {
		t.Helper()
		if err := broker.Client().ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	fill("1")
	if err := broker.Client().Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	publishertest.Fails(t, in.Ping(t.Context()), outbox.ClassUnavailable, "OOM command not allowed")
	fill("0")
	if err := in.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if keys := broker.Client().Keys(t.Context(), "*evt*").Val(); len(keys) > 0 {
		t.Errorf("a ping has left %v", keys)
	}
}
