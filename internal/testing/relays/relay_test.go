package relays_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
)

// forEachStore runs a test on every shipped layout and on the stream.
func forEachStore(t *testing.T, test func(b *bed)) {
	t.Helper()
	for _, name := range []string{"packfinderz", "doorito", "modkit", stream} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newBed(t, name))
		})
	}
}

func TestRelayDelivers(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		config := b.config(6, pgstore.Config{})
		config.BatchSize = 50
		relay := b.start(config)
		var ids []uuid.UUID
		for range 5 {
			ids = append(ids, b.emit(100)...)
			relay.Nudge()
		}
		b.waitReceived(len(ids))
		outboxtest.Stop(b, relay)
		b.wantOnce(ids)
		if b.name == "modkit" {
			b.wantSQL(`SELECT count(*) = 500 FROM modkit_outbox_events WHERE status = 'delivered' AND attempts = 1 AND locked_by IS NULL AND locked_until IS NULL`)
		}
	})
}

// TestClaimedOrder has one worker: messages are handed over as they were claimed.
func TestClaimedOrder(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		events := make([]outbox.Event, 200)
		for i := range events {
			if events[i] = b.event(); b.name == stream {
				events[i].Key = "one" // the order of others is nobody's
			}
		}
		ids := b.emitEvents(events...)
		config := b.config(4, pgstore.Config{})
		config.BatchSize, config.Concurrency = 30, 1
		b.drain(config)
		var got []uuid.UUID
		for _, m := range b.broker.Received() {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, ids) {
			b.Error("messages were not handed over in claimed order")
		}
	})
}

// TestOneRefused has the n-th message of a batch refused: only that one is tried again.
func TestOneRefused(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(20)
		var tries atomic.Int64
		b.broker.FailWith(func(m outbox.Message) error {
			if m.ID == ids[7] && tries.Add(1) < 3 {
				return fmt.Errorf("refused, attempt %d", m.Attempt)
			}
			return nil
		})
		b.drain(b.config(4, pgstore.Config{}))
		b.wantOnce(ids)
		for _, m := range b.broker.Received() {
			want := 1
			if m.ID == ids[7] {
				want = 3
			}
			if m.Attempt != want {
				b.Errorf("event %s was delivered at attempt %d, want %d", m.ID, m.Attempt, want)
			}
		}
		if n := b.logs.Count("event failed"); n != 2 {
			b.Errorf("%d failed attempts were logged, want 2", n)
		}
	})
}

// TestPoisonAtTheHead fills the head of the table with events that never succeed.
func TestPoisonAtTheHead(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		poison := b.emit(100)
		good := b.emit(50)
		b.broker.FailWith(func(m outbox.Message) error {
			if slices.Contains(poison, m.ID) {
				return errors.New("poison")
			}
			return nil
		})
		config := b.config(4, pgstore.Config{MaxAttempts: 2})
		config.BatchSize = 40 // less than the poison
		if b.name == "packfinderz" {
			// No row waits by itself there; the poison dies in turn, and the rest flows then.
			config.BatchSize = 60
		}
		relay := b.start(config)
		b.waitReceived(len(good))
		outboxtest.Stop(b, relay)
		b.wantOnce(good)
	})
}

// TestDeadAfterMaximum follows an event to its end, row by row.
func TestDeadAfterMaximum(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		event := b.event()
		if b.name == "doorito" {
			event.MaxAttempts = 3 // the row's own maximum beats the relay's
		}
		id := b.emitEvents(event)[0]
		var attempts atomic.Int64
		b.broker.FailWith(func(outbox.Message) error {
			return fmt.Errorf("failure %d", attempts.Add(1))
		})
		maximum := 3
		if b.name == "doorito" {
			maximum = 99
		}
		b.drain(b.config(4, pgstore.Config{MaxAttempts: maximum}))
		if n := attempts.Load(); n != 3 {
			b.Errorf("%d attempts, want 3", n)
		}
		b.wantSQL(map[string]string{
			"packfinderz": `SELECT published_at IS NULL AND attempt_count = 3 AND last_error = 'failure 3'
				AND (SELECT count(*) = 1 AND min(error_reason) = 'max_attempts' AND min(attempt_count) = 3 AND min(last_error) = 'failure 3'
					AND bool_and(d.event_id = e.id AND d.event_type = e.event_type AND d.aggregate_id = e.aggregate_id
						AND d.payload_json = e.payload_json AND d.created_at = e.created_at AND d.retried_at IS NULL) FROM outbox_dlq d)
				FROM outbox_events e WHERE id = $1`,
			"doorito": `SELECT status = 'failed' AND attempts = 3 AND next_attempt_at IS NULL AND delivered_at IS NULL AND error_message = 'failure 3'
				FROM outbox_event WHERE id = $1`,
			"modkit": `SELECT status = 'dead' AND attempts = 3 AND locked_by IS NULL AND locked_until IS NULL AND last_error = 'failure 3'
				AND updated_at > created_at FROM modkit_outbox_events WHERE id = $1`,
			stream: `SELECT state = 'dead' AND attempts = 3 AND last_error = 'failure 3' AND reason = 'max_attempts' FROM outbox_parked WHERE id = $1`,
		}[b.name], id)
	})
}

// TestRetryAfterKept has the broker ask for an hour, where events have a due time.
func TestRetryAfterKept(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		table := map[string]string{"doorito": "outbox_event", "modkit": "modkit_outbox_events", stream: "outbox_parked"}[b.name]
		if table == "" {
			return
		}
		b.broker.FailWith(func(outbox.Message) error { return outbox.RetryAfter(errors.New("come back in an hour"), time.Hour) })
		b.emit(1)
		b.start(b.config(6, pgstore.Config{}))
		b.waitLogged("come back in an hour")
		b.waitSQL(`SELECT next_attempt_at BETWEEN now() + interval '50 minutes' AND now() + interval '1 hour' FROM ` + table)
	})
}

// TestAttemptLevel has one line per attempt, whatever came of it.
func TestAttemptLevel(t *testing.T) {
	t.Parallel()
	b := newBed(t, "packfinderz")
	ids := b.emit(4)
	var skipped atomic.Bool
	b.broker.FailWith(func(m outbox.Message) error {
		switch {
		case m.ID == ids[3] && !skipped.Swap(true):
			return outbox.ErrNotAttempted // it was no attempt, and has no line
		case m.ID == ids[1]:
			return outbox.Rejected(errors.New("not a message"))
		case m.ID == ids[2] && m.Attempt == 1:
			return errors.New("not now")
		}
		return nil
	})
	config := b.config(4, pgstore.Config{})
	config.AttemptLevel = slog.LevelInfo
	b.drain(config)
	for line, want := range map[string]int{"level=INFO msg=\"event delivered\"": 3, "level=INFO msg=\"event failed\"": 1, "level=INFO msg=\"event dead\"": 1, "msg=\"event ": 5} {
		if n := b.logs.Count(line); n != want {
			b.Errorf("%d lines with %s, want %d: %s", n, line, want, b.logs.Text())
		}
	}
}

// TestTerminal is dead at once, and the batch goes on.
func TestTerminal(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(3)
		b.broker.FailWith(func(m outbox.Message) error {
			if m.ID == ids[1] {
				return outbox.Rejected(errors.New("too large"))
			}
			return nil
		})
		b.drain(b.config(4, pgstore.Config{}))
		b.wantOnce([]uuid.UUID{ids[0], ids[2]})
		b.wantSQL(map[string]string{
			"packfinderz": `SELECT published_at IS NULL AND attempt_count = 1 AND EXISTS (SELECT FROM outbox_dlq WHERE event_id = e.id AND error_reason = 'rejected')
				FROM outbox_events e WHERE id = $1`,
			"doorito": `SELECT status = 'failed' AND attempts = 1 AND error_message = 'too large' FROM outbox_event WHERE id = $1`,
			"modkit":  `SELECT status = 'dead' AND attempts = 1 AND last_error = 'too large' FROM modkit_outbox_events WHERE id = $1`,
			stream:    `SELECT state = 'dead' AND attempts = 1 AND last_error = 'too large' AND reason = 'rejected' FROM outbox_parked WHERE id = $1`,
		}[b.name], ids[1])
	})
}

// panicker panics at one event, whatever batch it is in.
type panicker struct {
	outbox.Publisher
	at uuid.UUID
}

func (p panicker) Publish(ctx context.Context, messages []outbox.Message) []error {
	for _, m := range messages {
		if m.ID == p.at {
			panic("cannot bear this event")
		}
	}
	return p.Publisher.Publish(ctx, messages)
}

func TestPublisherPanics(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(10)
		config := b.config(4, pgstore.Config{MaxAttempts: 2})
		event := ids[4]
		config.Publisher = panicker{b.broker, event}
		if b.name == "doorito" {
			_, err := b.pool.Exec(b.Context(), `UPDATE outbox_event SET max_attempts = 2`)
			if err != nil {
				b.Fatal(err)
			}
		}
		b.drain(config)
		b.wantOnce(slices.DeleteFunc(ids, func(id uuid.UUID) bool { return id == event }))
		if n := b.logs.Count("publisher panicked: cannot bear"); n != 2 {
			b.Errorf("%d attempts failed of the event that panics, want 2", n)
		}
	})
}

// answers is a publisher that acknowledges as many messages, however many it was given.
type answers int

func (n answers) Publish(context.Context, []outbox.Message) []error { return make([]error, n) }

// TestPublisherAnswersForOthers has fewer, or more, answers than messages: nobody knows which are
// acknowledged, so none counts as delivered, and none as tried.
func TestPublisherAnswersForOthers(t *testing.T) {
	t.Parallel()
	for _, n := range []answers{0, 1, 5} {
		t.Run(fmt.Sprintf("%d of 3", n), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "modkit")
			b.emit(3)
			config := b.config(4, pgstore.Config{MaxAttempts: 1})
			config.Publisher = n
			relay := b.start(config)
			b.logs.Await(t, fmt.Sprintf("it answered for %d of 3 messages", n))
			outboxtest.Stop(t, relay)
			b.wantSQL(`SELECT count(*) = 3 FROM modkit_outbox_events WHERE status = 'pending' AND attempts = 0`)
		})
	}
}

// bankError is an error type of a publisher's.
type bankError struct{ code int }

func (e *bankError) Error() string { return fmt.Sprint("bank: ", e.code) }

// TestNilPointerError has a publisher that answers with a nil pointer of its own error type: that is not nil, and nobody knows what it
// means. It counts as nothing, the relay goes on, and says what is wrong.
func TestNilPointerError(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		id := b.emit(1)[0]
		var broken atomic.Bool
		broken.Store(true)
		b.broker.FailWith(func(outbox.Message) error {
			if broken.Load() {
				return (*bankError)(nil)
			}
			return nil
		})
		relay := b.start(b.config(4, pgstore.Config{MaxAttempts: 1}))
		b.logs.Await(b, "nil pointer of type *relays_test.bankError")
		broken.Store(false)
		b.waitReceived(1)
		outboxtest.Stop(b, relay)
		b.wantOnce([]uuid.UUID{id})
	})
}

func TestHostileErrorText(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		id := b.emit(1)[0]
		b.broker.FailWith(func(outbox.Message) error {
			return outbox.Terminal(errors.New("bad \xff\xfe and \x00 and " + strings.Repeat("é", 1<<20)))
		})
		b.drain(b.config(4, pgstore.Config{}))
		table, column := b.layout.Table, b.layout.Columns.LastError.Name
		if b.name == stream {
			table, column = "outbox_parked", "last_error"
		}
		b.wantSQL(fmt.Sprintf(`SELECT char_length(%[1]s) = 1000 AND %[1]s LIKE 'bad %%' AND %[1]s LIKE '%%é' FROM %[2]s WHERE id = $1`, column, table), id)
	})
}

// slow blocks every publish until it is let go.
type slow struct {
	outbox.Publisher
	entered chan struct{}
	letGo   chan struct{}
}

func (s slow) Publish(ctx context.Context, messages []outbox.Message) []error {
	s.entered <- struct{}{}
	select {
	case <-s.letGo:
	case <-ctx.Done():
		errs := make([]error, len(messages))
		for i := range errs {
			errs[i] = ctx.Err()
		}
		return errs
	}
	return s.Publisher.Publish(ctx, messages)
}

// claimHook passes on how many events each claim took.
type claimHook chan int

func (c claimHook) OnClaim(report outbox.ClaimReport) { c <- report.Events }

// TestStopUnderLoad stops while batches are being published and others are claimed ahead:
// the first are finished, the others given back uncounted.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(100)
		config := b.config(6, pgstore.Config{})
		config.BatchSize = 10
		publisher := slow{b.broker, make(chan struct{}, 100), make(chan struct{})}
		claimed := make(claimHook, 100)
		config.Publisher, config.Hooks = publisher, []any{claimed}
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		relay := b.relay(config)
		done := make(chan error)
		go func() { done <- relay.Run(ctx) }()
		<-publisher.entered
		<-publisher.entered
		want := <-claimed + <-claimed // these two are being published
		<-claimed                     // and this one is ahead
		cancel()
		close(publisher.letGo)
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		if n := len(b.broker.Received()); n != want {
			b.Errorf("%d messages arrived, want the %d of the two batches that were being published", n, want)
		}
		if b.name == "modkit" {
			b.wantSQL(`SELECT count(*) FILTER (WHERE status = 'pending' AND attempts = 0 AND locked_by IS NULL) = 80
				AND count(*) FILTER (WHERE status = 'delivered' AND attempts = 1) = 20 FROM modkit_outbox_events`)
		}
		b.drain(b.config(4, pgstore.Config{}))
		b.wantOnce(ids)
	})
}

// TestPoolOfOne has one connection for everything and a broker that takes its time.
func TestPoolOfOne(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(60)
		config := b.config(1, pgstore.Config{})
		config.BatchSize, config.Concurrency, config.SweepEvery = 7, 3, time.Millisecond
		b.drain(config)
		b.wantOnce(ids)
	})
}

func TestSeveralRelays(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		var relays []*outbox.Relay
		for range 3 {
			config := b.config(6, pgstore.Config{})
			config.BatchSize = 10
			relays = append(relays, b.start(config))
		}
		var ids []uuid.UUID
		for range 10 {
			ids = append(ids, b.emit(50)...)
		}
		b.waitReceived(len(ids))
		for _, relay := range relays {
			outboxtest.Stop(b, relay)
		}
		b.wantOnce(ids)
	})
}

// TestPublishTimeout has one message get no answer. It counts when others of its topic arrive: then
// it is the message. Alone it may be the destination, and nothing counts.
func TestPublishTimeout(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	silent := b.emit(1)[0]
	config := b.config(4, pgstore.Config{MaxAttempts: 1})
	config.Publisher = struct {
		outbox.Publisher
		outbox.Pinger
	}{handOver(func(ctx context.Context, messages []outbox.Message) []error {
		errs := make([]error, len(messages))
		for i, m := range messages {
			if m.ID == silent {
				<-ctx.Done()
				errs[i] = ctx.Err()
				continue
			}
			errs[i] = b.broker.Publish(ctx, messages[i:i+1])[0]
		}
		return errs
	}), b.broker}
	config.PublishTimeout = 50 * time.Millisecond
	relay := b.start(config)
	b.logs.Await(t, "the route is closed")
	b.wantSQL(`SELECT status <> 'dead' AND last_error IS NULL FROM modkit_outbox_events WHERE id = $1`, silent)
	other := b.emit(1)[0]
	b.waitSQL(`SELECT status = 'dead' AND attempts = 1 AND last_error LIKE '%deadline%' FROM modkit_outbox_events WHERE id = $1`, silent)
	outboxtest.Stop(t, relay)
	b.wantOnce([]uuid.UUID{other})
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	relay := b.relay(b.config(4, pgstore.Config{}))
	outboxtest.Stop(t, relay) // nothing runs
	for range 20 {
		if err := relay.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := relay.Start(b.Context()); !errors.Is(err, outbox.ErrRunning) {
			b.Fatalf("a second start: %v", err)
		}
		if err := relay.Run(b.Context()); !errors.Is(err, outbox.ErrRunning) {
			b.Fatalf("a run beside a start: %v", err)
		}
		if err := relay.Drain(b.Context()); !errors.Is(err, outbox.ErrRunning) {
			b.Fatalf("a drain beside a start: %v", err)
		}
		go outboxtest.Stop(t, relay)
		outboxtest.Stop(t, relay)
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if err := relay.Run(ctx); err != nil {
		b.Fatalf("a run that is over before it begins: %v", err)
	}
	if err := relay.Drain(ctx); !errors.Is(err, context.Canceled) {
		b.Fatalf("a drain that is over before it begins: %v", err)
	}
}

// sweepHook is a hook that only a pointer is.
type sweepHook struct{}

func (*sweepHook) OnSweep(int64) {}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	good := b.config(4, pgstore.Config{Lease: 3 * time.Second})
	for words, change := range map[string]func(*outbox.RelayConfig){
		"Store is missing":      func(c *outbox.RelayConfig) { c.Store = nil },
		"Publisher is missing":  func(c *outbox.RelayConfig) { c.Publisher = (*outboxtest.Broker)(nil) },
		"no method of a hook":   func(c *outbox.RelayConfig) { c.Hooks = []any{make(claimHook), "a hook"} },
		"Hooks[0]":              func(c *outbox.RelayConfig) { c.Hooks = []any{(*sweepHook)(nil)} },
		"Grace is negative":     func(c *outbox.RelayConfig) { c.Grace = -1 },
		"has no routes":         func(c *outbox.RelayConfig) { c.Registry = outbox.Registry{} },
		"BatchSize is negative": func(c *outbox.RelayConfig) { c.BatchSize = -1 },
		"at most 100000":        func(c *outbox.RelayConfig) { c.BatchSize = 100_001 },
		"a third of the lease":  func(c *outbox.RelayConfig) { c.Poll = 1001 * time.Millisecond },
		"delay is negative":     func(c *outbox.RelayConfig) { c.Retry.Base = -1 },
		"below the first":       func(c *outbox.RelayConfig) { c.Retry = outbox.RetryPolicy{Base: time.Hour, Max: time.Minute} },
	} {
		config := good
		change(&config)
		if _, err := outbox.NewRelay(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q", err, words)
		}
	}
	config := good
	config.Publisher = nil
	if _, err := outbox.NewRelay(config); err == nil || !strings.Contains(err.Error(), "Publisher is missing") {
		t.Errorf("no publisher at all: %v", err)
	}
	config = good
	config.Poll = time.Second
	if _, err := outbox.NewRelay(config); err != nil {
		t.Errorf("a poll of just a third of the lease: %v", err)
	}
}
