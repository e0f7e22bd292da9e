package modkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/await"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// TestDispatcher hands a message over whole, and ends with its context.
func TestDispatcher(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	tenant := uuid.New()
	event := outbox.Event{
		Namespace: "mini-chat", Topic: "usage", TenantID: tenant, DedupeKey: tenant.String() + "/turn/request",
		Payload: []byte(`{"what": ["only", "Publish", "reads"]}`),
	}
	id := b.enqueue(0, event)[0]
	got := make(chan modkit.ClaimedMessage, 1)
	relay := b.dispatcher(modkit.DispatcherConfig{}, func(_ context.Context, m modkit.ClaimedMessage) error {
		got <- m
		return nil
	})
	ctx, shutdown := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	m := <-got
	if m.ID != id || m.Namespace != event.Namespace || m.Topic != event.Topic || m.TenantID != tenant ||
		m.DedupeKey != event.DedupeKey || string(m.Payload) != string(event.Payload) || m.Attempt != 1 {
		t.Errorf("it was given %+v", m)
	}
	b.awaitStatus(id, "delivered")
	b.want(id, "delivered", 1)
	if err := b.store(modkit.StoreConfig{}).Ack(t.Context(), m); err == nil {
		t.Error("what the dispatcher settles was acked by hand")
	}
	shutdown()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestDispatcherShutdown ends a dispatcher in the middle of a message: that one is finished, and
// what it had claimed ahead is given back, uncounted.
func TestDispatcherShutdown(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.enqueue(3)
	entered, leave := make(chan uuid.UUID, len(ids)), make(chan struct{})
	relay := b.dispatcher(modkit.DispatcherConfig{BatchSize: 1, Concurrency: 1}, func(_ context.Context, m modkit.ClaimedMessage) error {
		entered <- m.ID
		<-leave
		return nil
	})
	ctx, shutdown := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	first := <-entered
	// One batch is being published, one waits for a lane, one is claimed ahead.
	await.Until(t, "all to be claimed", func() bool {
		return !slices.ContainsFunc(ids, func(id uuid.UUID) bool { return b.row(id).status != "processing" })
	})
	shutdown()
	close(leave)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	b.want(first, "delivered", 1)
	for _, id := range ids {
		if r := b.row(id); r.status == "processing" || r.status == "pending" && r.attempts != 0 {
			t.Errorf("event %s is left %s after %d attempts", id, r.status, r.attempts)
		}
	}
}

// TestDispatcherSeesOnlyItsOwn has modules and tenants share a table.
func TestDispatcherSeesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	mine, other := uuid.New(), uuid.New()
	event := func(namespace, topic string, tenant uuid.UUID) uuid.UUID {
		return b.enqueue(0, outbox.Event{Namespace: namespace, Topic: topic, TenantID: tenant, Payload: []byte(`{}`)})[0]
	}
	chat, bill := event("mini-chat", "usage", mine), event("billing", "usage", mine)
	foreign, system := event("mini-chat", "usage", other), event("mini-chat", "usage", uuid.Nil)
	elsewhere := event("mini-chat", "audit", mine)
	for name, c := range map[string]struct {
		config modkit.StoreConfig
		want   []uuid.UUID
	}{
		"one namespace":    {modkit.StoreConfig{Namespace: "billing"}, []uuid.UUID{bill}},
		"one topic":        {modkit.StoreConfig{Namespace: "mini-chat", Topics: []string{"audit"}}, []uuid.UUID{elsewhere}},
		"one tenant":       {modkit.StoreConfig{Namespace: "mini-chat", TenantID: other}, []uuid.UUID{foreign}},
		"another tenant":   {modkit.StoreConfig{Namespace: "mini-chat", Topics: []string{"usage"}, TenantID: mine}, []uuid.UUID{chat}},
		"an unknown one":   {modkit.StoreConfig{Namespace: "nobody"}, nil},
		"no tenant of it":  {modkit.StoreConfig{Namespace: "billing", TenantID: other}, nil},
		"the exact string": {modkit.StoreConfig{Namespace: "mini-chat' OR true --"}, nil},
	} {
		store := b.store(c.config)
		messages := b.claim(store, len(c.want))
		for i, m := range messages {
			if m.ID != c.want[i] {
				t.Errorf("%s: claimed %s, want %s", name, m.ID, c.want[i])
			}
			if err := store.Release(t.Context(), m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// Two dispatchers beside each other.
	seen := make(chan string, 10)
	for _, namespace := range []string{"mini-chat", "billing"} {
		b.dispatch(modkit.DispatcherConfig{Store: modkit.StoreConfig{Namespace: namespace}},
			func(_ context.Context, m modkit.ClaimedMessage) error {
				seen <- namespace + " saw " + m.Namespace
				return nil
			})
	}
	for _, id := range []uuid.UUID{chat, bill, foreign, system, elsewhere} {
		b.awaitStatus(id, "delivered")
	}
	close(seen)
	count := make(map[string]int)
	for s := range seen {
		count[s]++
	}
	if len(count) != 2 || count["mini-chat saw mini-chat"] != 4 || count["billing saw billing"] != 1 {
		t.Errorf("dispatchers saw %v", count)
	}
}

// TestDispatcherFailures follows a message through all its attempts to its death: each waits
// longer than the one before, by the formula, and keeps its error.
func TestDispatcherFailures(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	const base, attempts = time.Hour, 4
	deaths := &deathCounter{died: make(chan outbox.Reason, 1)}
	b.dispatch(modkit.DispatcherConfig{
		Store: modkit.StoreConfig{MaxAttempts: attempts, Retry: outbox.RetryPolicy{Base: base, Max: 3 * base}},
		Hooks: []any{deaths},
	}, func(_ context.Context, m modkit.ClaimedMessage) error {
		return fmt.Errorf("downstream refused attempt %d", m.Attempt)
	})
	for i, ceiling := range []time.Duration{base, 2 * base, 3 * base} {
		attempt := i + 1
		await.Until(t, "the attempt to fail", func() bool { r := b.row(id); return r.status == "pending" && r.attempts == attempt })
		r := b.want(id, "pending", attempt)
		if r.dueIn < ceiling/2-time.Minute || r.dueIn > ceiling {
			t.Errorf("after attempt %d it is due in %s, want between %s and %s", attempt, r.dueIn, ceiling/2, ceiling)
		}
		if !strings.Contains(r.lastError, fmt.Sprint("downstream refused attempt ", attempt)) {
			t.Errorf("after attempt %d the error is %q", attempt, r.lastError)
		}
		b.makeDue()
	}
	if reason := <-deaths.died; reason != outbox.ReasonMaxAttempts {
		t.Errorf("it died for %s", reason)
	}
	if r := b.want(id, "dead", attempts); !strings.Contains(r.lastError, "refused attempt 4") {
		t.Errorf("the last error is %q", r.lastError)
	}
	line := b.logs.Line("event dead")
	for _, words := range []string{
		"level=ERROR", "event_id=" + id.String(), "namespace=mini-chat", "topic=usage", "attempt=4", "refused attempt 4", "reason=max_attempts",
	} {
		if !strings.Contains(line, words) {
			t.Errorf("the log lacks %q: %s", words, line)
		}
	}
}

// deathCounter is a hook, as a module's metrics are.
type deathCounter struct{ died chan outbox.Reason }

func (d *deathCounter) OnSettle(report outbox.BatchReport) {
	for _, outcome := range report.Outcomes {
		if outcome.Kind == outbox.Died {
			d.died <- outcome.Reason
		}
	}
}

// TestDispatcherAnswers has Publish answer in all the ways there are.
func TestDispatcherAnswers(t *testing.T) {
	t.Parallel()
	cause := errors.New("the answer")
	for name, c := range map[string]struct {
		answer   func() error
		status   string
		attempts int
	}{
		"an ordinary error is tried again": {func() error { return cause }, "pending", 1},
		"a timeout is tried again":         {func() error { return context.DeadlineExceeded }, "pending", 1},
		"a panic is tried again":           {func() error { panic("the answer") }, "pending", 1},
		"a terminal error is the end":      {func() error { return outbox.Terminal(cause) }, "dead", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			id := b.enqueue(1)[0]
			b.dispatch(modkit.DispatcherConfig{Store: modkit.StoreConfig{Retry: outbox.RetryPolicy{Base: time.Hour, Max: time.Hour}}},
				func(context.Context, modkit.ClaimedMessage) error { return c.answer() })
			await.Until(t, "the attempt to be settled", func() bool { r := b.row(id); return r.lastError != "" && !r.held })
			b.want(id, c.status, c.attempts)
		})
	}
}

// TestDispatcherOutage has Publish find downstream away: nothing is counted, however often.
func TestDispatcherOutage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.enqueue(1)[0]
	calls := 0 // one message, one call at a time
	b.dispatch(modkit.DispatcherConfig{Store: modkit.StoreConfig{MaxAttempts: 1}}, func(context.Context, modkit.ClaimedMessage) error {
		if calls++; calls <= 3 {
			return outbox.Unavailable(errors.New("downstream is away"))
		}
		return nil
	})
	b.awaitStatus(id, "delivered")
	if r := b.want(id, "delivered", 1); r.lastError != "" {
		t.Errorf("the last error is %q", r.lastError)
	}
}

// TestDispatcherLosesItsLease has another worker own the row by the time Publish returns: that
// is logged, and the row is left alone, whatever the answer.
func TestDispatcherLosesItsLease(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"acknowledged": nil, "failed": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			id := b.enqueue(1)[0]
			thief := uuid.New()
			b.dispatch(modkit.DispatcherConfig{}, func(_ context.Context, m modkit.ClaimedMessage) error {
				if m.Attempt > 1 {
					return errors.New("it was given the message again")
				}
				_, err := b.pool.Exec(t.Context(), `UPDATE modkit_outbox_events SET locked_by = $1, attempts = 2 WHERE id = $2`, thief, id)
				return errors.Join(err, answer)
			})
			await.Until(t, "the loss to be logged", func() bool {
				return strings.Contains(b.logs.Line("lease lost"), id.String())
			})
			if r := b.want(id, "processing", 2); r.owner != thief.String() || r.lastError != "" {
				t.Errorf("the row of another worker has become %+v", r)
			}
		})
	}
}

// TestDispatcherReclaims takes over what a worker held that is gone.
func TestDispatcherReclaims(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.enqueue(3)
	gone := b.store(modkit.StoreConfig{})
	b.claim(gone, 3)
	b.claim(b.store(modkit.StoreConfig{}), 0) // they are held
	b.expire()
	attempts := make(chan int, len(ids))
	b.dispatch(modkit.DispatcherConfig{}, func(_ context.Context, m modkit.ClaimedMessage) error {
		attempts <- m.Attempt
		return nil
	})
	for _, id := range ids {
		if attempt := <-attempts; attempt != 2 {
			t.Errorf("it is attempt %d, want 2", attempt)
		}
		b.awaitStatus(id, "delivered")
	}
}

func TestDispatcherRefuses(t *testing.T) {
	t.Parallel()
	pool := newBed(t).pool
	publish := func(context.Context, modkit.ClaimedMessage) error { return nil }
	for words, c := range map[string]struct {
		config  modkit.DispatcherConfig
		publish modkit.Publish
	}{
		"no function to publish with": {publish: nil},
		"at most a third of the lease": {
			modkit.DispatcherConfig{Store: modkit.StoreConfig{LeaseDuration: 3 * time.Second}, PollInterval: 1001 * time.Millisecond}, publish},
		"must be at least 1":     {modkit.DispatcherConfig{Store: modkit.StoreConfig{MaxAttempts: -1}}, publish},
		"must be at least 100ms": {modkit.DispatcherConfig{Store: modkit.StoreConfig{LeaseDuration: 1}}, publish},
		"delay is negative":      {modkit.DispatcherConfig{Store: modkit.StoreConfig{Retry: outbox.RetryPolicy{Base: -1}}}, publish},
		"BatchSize is negative":  {modkit.DispatcherConfig{BatchSize: -1}, publish},
		"an option is negative":  {modkit.DispatcherConfig{Concurrency: -1}, publish},
	} {
		if _, err := modkit.NewDispatcher(pool, c.config, c.publish); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	_, err := modkit.NewDispatcher(pool,
		modkit.DispatcherConfig{Store: modkit.StoreConfig{LeaseDuration: 3 * time.Second}, PollInterval: time.Second}, publish)
	if err != nil {
		t.Errorf("a third of the lease was refused: %v", err)
	}
}
