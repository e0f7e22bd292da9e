package modkit_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestDispatcher hands over a complete message, and ends with its context.
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
	relay := b.dispatcher(modkit.Config{}, modkit.DispatcherConfig{}, func(_ context.Context, m modkit.ClaimedMessage) error {
		got <- m
		return nil
	})
	ctx, shutdown := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	m := <-got
	if m.ID != id || m.Namespace != event.Namespace || m.Topic != event.Topic || m.TenantID != tenant ||
		m.DedupeKey != event.DedupeKey || string(m.Payload) != string(event.Payload) || m.Attempts != 1 {
		t.Errorf("it was given %+v", m)
	}
	b.awaitDelivered(id)
	b.want(id, "delivered", 1)
	if err := b.module(modkit.Config{}).Ack(t.Context(), m); err == nil {
		t.Error("what the dispatcher settles was acked by hand")
	}
	shutdown()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestDispatcherShutdown stops a dispatcher in the middle of a message: that one is finished, and what was claimed
// ahead is released, uncounted.
func TestDispatcherShutdown(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.enqueue(3)
	entered, leave := make(chan uuid.UUID, len(ids)), make(chan struct{})
	relay := b.dispatcher(modkit.Config{}, modkit.DispatcherConfig{Claim: modkit.ClaimCfg{BatchSize: 1}, Concurrency: 1}, func(_ context.Context, m modkit.ClaimedMessage) error {
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

// TestDispatcherSeesOnlyItsOwn lets modules and tenants share a table.
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
		config modkit.Config
		want   []uuid.UUID
	}{
		"one namespace":    {modkit.Config{Namespace: "billing"}, []uuid.UUID{bill}},
		"one topic":        {modkit.Config{Namespace: "mini-chat", Topics: []string{"audit"}}, []uuid.UUID{elsewhere}},
		"one tenant":       {modkit.Config{Namespace: "mini-chat", TenantID: other}, []uuid.UUID{foreign}},
		"another tenant":   {modkit.Config{Namespace: "mini-chat", Topics: []string{"usage"}, TenantID: mine}, []uuid.UUID{chat}},
		"an unknown one":   {modkit.Config{Namespace: "nobody"}, nil},
		"no tenant of it":  {modkit.Config{Namespace: "billing", TenantID: other}, nil},
		"the exact string": {modkit.Config{Namespace: "mini-chat' OR true --"}, nil},
	} {
		module := b.module(c.config)
		messages := b.claim(module, len(c.want))
		for i, m := range messages {
			if m.ID != c.want[i] {
				t.Errorf("%s: claimed %s, want %s", name, m.ID, c.want[i])
			}
			if err := module.Release(t.Context(), m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// Two dispatchers beside each other.
	seen := make(chan string, 10)
	for _, namespace := range []string{"mini-chat", "billing"} {
		b.dispatch(modkit.Config{Namespace: namespace}, modkit.DispatcherConfig{},
			func(_ context.Context, m modkit.ClaimedMessage) error {
				seen <- namespace + " saw " + m.Namespace
				return nil
			})
	}
	for _, id := range []uuid.UUID{chat, bill, foreign, system, elsewhere} {
		b.awaitDelivered(id)
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

func TestDispatcherRefuses(t *testing.T) {
	t.Parallel()
	pool := newBed(t).pool
	handle := func(context.Context, modkit.ClaimedMessage) error { return nil }
	handled := modkit.DispatcherConfig{Otherwise: handle}
	with := func(change func(*modkit.DispatcherConfig)) modkit.DispatcherConfig {
		config := handled
		change(&config)
		return config
	}
	try := func(module modkit.Config, config modkit.DispatcherConfig) error {
		module.Namespace = "mini-chat"
		own, err := modkit.NewModule(pool, module)
		if err == nil {
			_, err = modkit.NewDispatcher(own, config)
		}
		return err
	}
	for words, c := range map[string]struct {
		module modkit.Config
		config modkit.DispatcherConfig
	}{
		"has no handler":                      {},
		`the handler of topic "usage" is nil`: {config: modkit.DispatcherConfig{Handlers: map[string]modkit.Handler{"usage": nil}}},
		`only the topics ["audit"]`: {
			modkit.Config{Topics: []string{"audit"}}, modkit.DispatcherConfig{Handlers: map[string]modkit.Handler{"usage": handle}}},
		"at most a third of the lease": {
			modkit.Config{LeaseDuration: 3 * time.Second}, with(func(c *modkit.DispatcherConfig) { c.PollInterval = 1001 * time.Millisecond })},
		"must be between 1 and":         {modkit.Config{MaxAttempts: -1}, handled},
		"must be between 100ms and 24h": {modkit.Config{LeaseDuration: 1}, handled},
		"delay is negative":             {modkit.Config{Retry: outbox.RetryPolicy{Base: -1}}, handled},
		"Claim.BatchSize is -1":         {config: with(func(c *modkit.DispatcherConfig) { c.Claim.BatchSize = -1 })},
		"between 1 and 100000 messages": {config: with(func(c *modkit.DispatcherConfig) { c.Claim.BatchSize = 1 << 40 })},
		"Config.Concurrency is -1":      {config: with(func(c *modkit.DispatcherConfig) { c.Concurrency = -1 })},
		"PublishTimeout is 2562047h":    {config: with(func(c *modkit.DispatcherConfig) { c.PublishTimeout = math.MaxInt64 })},
		"PollInterval is -1ns":          {config: with(func(c *modkit.DispatcherConfig) { c.PollInterval = -1 })},
	} {
		if err := try(c.module, c.config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	third := with(func(c *modkit.DispatcherConfig) { c.PollInterval = time.Second })
	if err := try(modkit.Config{LeaseDuration: 3 * time.Second}, third); err != nil {
		t.Errorf("a third of the lease was refused: %v", err)
	}
}
