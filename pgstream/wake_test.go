package pgstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestWakes hears the notifier of another process, and a single wake-up.
func TestWakes(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	store := h.open(t, pgstream.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	woken, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- store.Listen(ctx, func() {
			select {
			case woken <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	wait := func(what string) {
		t.Helper()
		select {
		case <-woken:
		case <-ctx.Done():
			t.Fatal("not woken by " + what)
		}
	}
	wait("the listener's own probe")
	notifier, err := pgstream.NewNotifier(h.pool, pgstream.Stream{Schema: "public"})
	if err != nil {
		t.Fatal(err)
	}
	defer notifier.Close()
	notifier.Notify()
	wait("a notifier that names the schema")
	if err := pgstream.Wake(ctx, pgtest.Connect(t, h.url), pgstream.Stream{}); err != nil {
		t.Fatal(err)
	}
	wait("a wake-up")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := pgstream.NewNotifier(h.pool, pgstream.Stream{Schema: "\x00"}); err == nil {
		t.Error("a schema that cannot be was taken")
	}
}
