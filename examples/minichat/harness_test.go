package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// nowhere is the broker of tests in which nothing is published.
const nowhere = "nats://127.0.0.1:1"

func openDatabase(t *testing.T) *database.Database {
	t.Helper()
	db, err := database.Open(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func broker(t *testing.T, url string) natsjs.Config {
	t.Helper()
	config, err := brokerAt(url)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// openChat is a chat with a tenant, whose dispatcher does not run yet.
func openChat(t *testing.T, nats string) (*chat, uuid.UUID) {
	t.Helper()
	c, err := newChat(t.Context(), openDatabase(t), broker(t, nats), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.broker.Close() })
	id := uuid.New()
	if err := c.setQuota(t.Context(), id, 100); err != nil {
		t.Fatal(err)
	}
	return c, id
}

// startDispatcher runs it until the end of the test.
func startDispatcher(t *testing.T, c *chat) {
	t.Helper()
	if err := c.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outboxtest.Stop(t, c.dispatcher) })
}

// openBilling is billing, whose consumer does not run yet.
func openBilling(t *testing.T, nats string) *billing {
	t.Helper()
	b, err := newBilling(t.Context(), openDatabase(t), broker(t, nats), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.dead.Close() })
	return b
}

// startConsumer runs it until the end of the test.
func startConsumer(t *testing.T, b *billing) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.consumer.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func ask(t *testing.T, pool *pgxpool.Pool, query string, args ...any) (n int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantTenant(t *testing.T, c *chat, id uuid.UUID, want tenant) {
	t.Helper()
	want.Quota = 100
	if got, err := c.tenant(t.Context(), id); err != nil || got != want {
		t.Errorf("the tenant is %+v, want %+v: %v", got, want, err)
	}
}

func wantAccount(t *testing.T, b *billing, id uuid.UUID, want account) {
	t.Helper()
	if got, err := b.account(t.Context(), id); err != nil || got != want {
		t.Errorf("the account is %+v, want %+v: %v", got, want, err)
	}
}
