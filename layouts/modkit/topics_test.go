package modkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestTopicsAreIndependent makes the handler of one topic hang, or report that downstream is unavailable. The
// messages of another topic are handled all the same, and no attempt is counted for a message that never reached a
// handler.
func TestTopicsAreIndependent(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(release <-chan struct{}) error{
		"away":  func(<-chan struct{}) error { return outbox.Unavailable(errors.New("no answer")) },
		"hangs": func(release <-chan struct{}) error { <-release; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			release := make(chan struct{})
			defer close(release)
			const concurrency, each = 2, 12
			module := b.module(modkit.Config{Namespace: "mini-chat", MaxAttempts: 3, Retry: outbox.RetryPolicy{Base: time.Millisecond, Max: 10 * time.Millisecond}})
			dispatcher, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{
				Handlers: map[string]modkit.Handler{
					"trouble": func(context.Context, modkit.ClaimedMessage) error { return trouble(release) },
					"fine":    func(context.Context, modkit.ClaimedMessage) error { return nil },
				},
				Concurrency: concurrency, OffPool: true, PollInterval: 20 * time.Millisecond, PublishTimeout: 50 * time.Millisecond, Logger: b.logger(),
			})
			if err != nil {
				t.Fatal(err)
			}
			var messages []modkit.Message
			for i := range 2 * each {
				messages = append(messages, modkit.Message{Topic: []string{"trouble", "fine"}[i%2], Payload: []byte(fmt.Sprint(i))})
			}
			if _, err := b.enqueueIn(module, messages...); err != nil {
				t.Fatal(err)
			}
			if err := dispatcher.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer outboxtest.Stop(t, dispatcher)
			count := func(where string) (n int) {
				if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM modkit_outbox_events WHERE `+where).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			for round := 1; round <= 4; round++ { // so that there is time to count what is not tried
				await.Until(t, "the other topic to be handled", func() bool { return count(`topic = 'fine' AND status = 'delivered'`) == round*each })
				for range each {
					if _, err := b.enqueueIn(module, modkit.Message{Topic: "fine", Payload: []byte(`{}`)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if dead := count(`status = 'dead'`); dead > concurrency {
				t.Errorf("%d messages are dead, and only %d were handed to a handler", dead, concurrency)
			}
		})
	}
}

// TestSettlesItsOwn gives a module's claimed messages to a module of another namespace.
func TestSettlesItsOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	own, other := b.module(modkit.Config{Namespace: "mini-chat"}), b.module(modkit.Config{Namespace: "billing"})
	if _, err := b.enqueueIn(own, modkit.Message{Topic: "usage", Payload: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	message := b.claim(own, 1)[0]
	forged := message
	forged.Namespace = "billing"
	for _, m := range []modkit.ClaimedMessage{message, forged} {
		for name, err := range map[string]error{
			"ack": other.Ack(t.Context(), m), "nack": other.Nack(t.Context(), m, errors.New("no")),
			"renew": other.Renew(t.Context(), m), "release": other.Release(t.Context(), m),
		} {
			if err == nil {
				t.Errorf("%s reaches the message of another module", name)
			}
		}
	}
	if err := b.module(modkit.Config{}).Ack(t.Context(), message); err != nil {
		t.Errorf("a tool of all namespaces cannot: %v", err)
	}
	pgtest.Exec(t, b.pool, `SELECT 1 / (count(*) FILTER (WHERE status = 'delivered'))::int FROM modkit_outbox_events`)
}
