package modkit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// connect returns a pool of some connections.
func (b *bed) connect(conns int32) *pgxpool.Pool {
	b.Helper()
	config, err := pgxpool.ParseConfig(b.url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}

// TestDispatcherKeepsItsLeases has handlers that work nearly as long as a lease, each with a connection of a small
// pool, and more messages than they can take at once. The dispatcher's own statements find a connection, and no
// waiting message is lost: every message is handled once, by the first claim.
func TestDispatcherKeepsItsLeases(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	// A machine that hangs for seconds loses leases, too, and rightly.
	const rounds = 3
	for round := 1; ; round++ {
		got := b.workSlowly()
		if got == "" {
			return
		}
		if t.Logf("round %d: %s", round, got); round == rounds {
			t.Fatal("leases were lost in every round")
		}
	}
}

// workSlowly runs a dispatcher until nothing is left, and returns what went wrong.
func (b *bed) workSlowly() string {
	b.Helper()
	const messages, conns, lease, work = 12, 4, 3 * time.Second, 2 * time.Second
	ids := b.enqueue(messages)
	pool := b.connect(conns)
	module, err := modkit.NewModule(pool, modkit.Config{Namespace: "mini-chat", LeaseDuration: lease})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	calls := make(map[uuid.UUID]int)
	claims := &claimCounter{}
	dispatcher, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{
		Claim: modkit.ClaimCfg{BatchSize: 4}, Hooks: []any{claims}, Logger: b.logger(),
		Otherwise: func(ctx context.Context, m modkit.ClaimedMessage) error {
			mu.Lock()
			calls[m.ID]++
			mu.Unlock()
			_, err := pool.Exec(ctx, `SELECT pg_sleep($1)`, work.Seconds())
			return err
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := dispatcher.Drain(b.Context()); err != nil {
		b.Fatal(err)
	}
	var wrong []string
	for _, id := range ids {
		if r := b.row(id); r.status != delivered || r.attempts != 1 || calls[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s is %s after %d attempts and %d calls", id, r.status, r.attempts, calls[id]))
		}
	}
	if claims.reclaimed > 0 {
		wrong = append(wrong, fmt.Sprint(claims.reclaimed, " were reclaimed"))
	}
	return strings.Join(wrong, "; ")
}

// claimCounter is a hook.
type claimCounter struct{ reclaimed int }

func (c *claimCounter) OnClaim(report outbox.ClaimReport) { c.reclaimed += report.Reclaimed }

// TestDispatcherFitsItsPool checks that a dispatcher whose handlers could take all connections is refused, with the
// arithmetic.
func TestDispatcherFitsItsPool(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	handle := func(context.Context, modkit.ClaimedMessage) error { return nil }
	for _, c := range []struct {
		conns       int32
		concurrency int
		offPool     bool
		want        string
	}{
		{conns: 4},
		{conns: 3},
		{conns: 2, want: "1 handlers at once with a connection each, and 2 connections for the dispatcher's claims and leases, are 3; the module has 2"},
		{conns: 4, concurrency: 2},
		{conns: 4, concurrency: 3, want: "are 5; the module has 4"},
		{conns: 4, concurrency: 16, offPool: true},
		{conns: 1, offPool: true},
	} {
		module, err := modkit.NewModule(b.connect(c.conns), modkit.Config{Namespace: "mini-chat"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = modkit.NewDispatcher(module, modkit.DispatcherConfig{Otherwise: handle, Concurrency: c.concurrency, OffPool: c.offPool})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// TestDispatcherShortLease uses leases shorter than the default times: the times follow.
func TestDispatcherShortLease(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, lease := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 0} {
		id := b.enqueue(1)[0]
		handled := make(chan time.Duration, 10)
		module := b.module(modkit.Config{LeaseDuration: lease})
		dispatcher, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{Logger: b.logger(),
			Otherwise: func(ctx context.Context, _ modkit.ClaimedMessage) error {
				deadline, _ := ctx.Deadline()
				handled <- time.Until(deadline)
				return nil
			}})
		if err != nil {
			t.Fatalf("a lease of %s: %v", lease, err)
		}
		if err := dispatcher.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-handled; lease > 0 && got > lease {
			t.Errorf("a lease of %s leaves a handler %s", lease, got)
		}
		b.want(id, delivered, b.row(id).attempts)
	}
}

// TestDispatcherTopics hands messages to the handlers of their topics, and leaves others alone.
func TestDispatcherTopics(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	module := b.module(modkit.Config{Namespace: "mini-chat", MaxAttempts: 1}) // a message without a handler dies of it
	enqueued, err := b.enqueueIn(module, modkit.Message{Topic: "usage", Payload: []byte(`{}`)},
		modkit.Message{Topic: "audit", Payload: []byte(`{}`)}, modkit.Message{Topic: "other", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	handle := func(name string) modkit.Handler {
		return func(_ context.Context, m modkit.ClaimedMessage) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, name+" had "+m.Topic)
			return nil
		}
	}
	byTopic := map[string]modkit.Handler{"usage": handle("usage"), "audit": handle("audit")}
	for _, otherwise := range []modkit.Handler{nil, handle("otherwise")} {
		dispatcher, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{Handlers: byTopic, Otherwise: otherwise, Logger: b.logger()})
		if err != nil {
			t.Fatal(err)
		}
		if err := dispatcher.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if otherwise == nil {
			b.want(enqueued[2].ID, pending, 0)
		}
	}
	got := strings.Join(seen, ", ")
	for _, words := range []string{"usage had usage", "audit had audit", "otherwise had other"} {
		if !strings.Contains(got, words) || len(seen) != 3 {
			t.Errorf("%s; want %s", got, words)
		}
	}
}
