package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
)

func open(t *testing.T, client goredis.UniversalClient, config idempotency.Config) *idempotency.Manager {
	t.Helper()
	manager, err := idempotency.NewManager(client, config)
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

// The key and its TTL are those of the contract, and Delete removes it.
func TestKey(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	client := server.Client()
	manager := open(t, client, idempotency.Config{TTL: 168 * time.Hour})
	event := uuid.New()
	key := fmt.Sprintf("pf:evt:processed:compliance:%s", event)
	for ttl, want := range map[time.Duration]time.Duration{0: 168 * time.Hour, time.Hour: time.Hour} {
		if done, err := manager.CheckAndMarkProcessed(t.Context(), "compliance", event, ttl); done || err != nil {
			t.Fatalf("a new event: %t, %v", done, err)
		}
		if done, err := manager.CheckAndMarkProcessed(t.Context(), "compliance", event, ttl); !done || err != nil {
			t.Errorf("a duplicate: %t, %v", done, err)
		}
		if left := client.TTL(t.Context(), key).Val(); left > want || left < want-time.Minute {
			t.Errorf("the key has %s left, want %s", left, want)
		}
		if err := manager.Delete(t.Context(), "compliance", event); err != nil {
			t.Fatal(err)
		}
		if n := client.Exists(t.Context(), key).Val(); n != 0 {
			t.Error("the key is still there")
		}
	}
}

// However many have the event at once, one of them is told that it is the first.
func TestOneOfManyIsFirst(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	event := uuid.New()
	var first atomic.Int64
	var running sync.WaitGroup
	for range 4 {
		manager := open(t, server.Client(), idempotency.Config{})
		for range 8 {
			running.Go(func() {
				done, err := manager.CheckAndMarkProcessed(t.Context(), "compliance", event, 0)
				if err != nil {
					t.Error(err)
				}
				if !done {
					first.Add(1)
				}
			})
		}
	}
	running.Wait()
	if first.Load() != 1 {
		t.Errorf("%d were told that they are the first", first.Load())
	}
}

// An effect that Handle has under way does not pass for done, and the two calls know each other's marks.
func TestHandleUsesTheSameKeys(t *testing.T) {
	t.Parallel()
	manager := open(t, redistest.New(t).Client(), idempotency.Config{})
	event := uuid.New()
	ran, err := inbox.Handle(t.Context(), manager, "compliance", event, func(ctx context.Context) error {
		if _, err := manager.CheckAndMarkProcessed(ctx, "compliance", event, 0); !errors.Is(err, inbox.ErrInProgress) {
			t.Errorf("while the effect is under way: %v", err)
		}
		return nil
	})
	if !ran || err != nil {
		t.Fatal(ran, err)
	}
	if done, err := manager.CheckAndMarkProcessed(t.Context(), "compliance", event, 0); !done || err != nil {
		t.Errorf("after Handle: %t, %v", done, err)
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	away := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = away.Close() }) // it was never connected
	for name, config := range map[string]idempotency.Config{
		"a short TTL":   {TTL: time.Millisecond},
		"too short for": {TTL: time.Hour, Horizon: 7 * 24 * time.Hour},
	} {
		if _, err := idempotency.NewManager(away, config); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	var none *goredis.Client
	for _, client := range []goredis.UniversalClient{nil, none} {
		if _, err := idempotency.NewManager(client, idempotency.Config{}); err == nil {
			t.Error("no client: taken")
		}
	}
	// A Redis that is away is an error of each call, and says nothing about the event.
	manager := open(t, away, idempotency.Config{})
	if _, err := manager.CheckAndMarkProcessed(t.Context(), "compliance", uuid.New(), 0); outbox.Classify(err) != outbox.ClassUnavailable {
		t.Errorf("without Redis: %v", err)
	}
}
