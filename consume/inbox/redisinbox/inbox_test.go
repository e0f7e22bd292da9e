package redisinbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

const (
	inboxConsumer = "billing"
	patience      = 30 * time.Second
)

// dial makes a client from a URL, as a consumer has one.
func dial(url string) (goredis.UniversalClient, error) {
	config, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options, err := config.ClientOptions()
	if err != nil {
		return nil, err
	}
	return goredis.NewUniversalClient(options), nil
}

// openInbox opens an inbox on a URL until the test ends.
func openInbox(t testing.TB, url string, config redisinbox.Config) *redisinbox.Inbox {
	t.Helper()
	client, err := dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	config.Client = client
	in, err := redisinbox.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// inboxHarness is a part of a Redis, with a prefix of its own.
type inboxHarness struct {
	broker *redistest.Broker
	prefix string
}

func (h *inboxHarness) Open(t testing.TB, ttl inbox.TTL) inbox.Inbox {
	t.Helper()
	return openInbox(t, h.broker.URL(), redisinbox.Config{KeyPrefix: h.prefix, TTL: ttl})
}

func (h *inboxHarness) Expire(t testing.TB) {
	t.Helper()
	client := h.broker.Client()
	keys, err := client.Keys(context.Background(), h.prefix+":*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if strings.HasPrefix(client.Get(context.Background(), key).Val(), "processing:") {
			client.Del(context.Background(), key)
		}
	}
}

func TestInbox(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	inboxtest.Run(t, func(*testing.T) inboxtest.Harness { return &inboxHarness{broker, uuid.NewString()} })
}

// TestInboxKeys looks at what is written: the names and ends of the keys are part of the contract.
func TestInboxKeys(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{TTL: inbox.TTL{Processing: time.Minute, Done: time.Hour}})
	key := "pf:evt:processed:billing:" + event.String()
	see := func(state string, longest time.Duration) {
		t.Helper()
		value, left := broker.Client().Get(t.Context(), key).Val(), broker.Client().PTTL(t.Context(), key).Val()
		if !strings.HasPrefix(value, state) || len(value) < len(state)+36 || left > longest || left < longest/2 {
			t.Errorf("the key is %q for %s, want %s for %s", value, left, state, longest)
		}
	}
	claim, err := in.Begin(t.Context(), inboxConsumer, event)
	if err != nil {
		t.Fatal(err)
	}
	see("processing:", time.Minute)
	if err := claim.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	see("done:", time.Hour)
	if err := in.Delete(t.Context(), inboxConsumer, event); err != nil {
		t.Fatal(err)
	}
	if _, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	see("done:", 2*time.Hour)
	if keys := broker.Client().Keys(t.Context(), "*evt*").Val(); len(keys) != 1 || keys[0] != key {
		t.Errorf("the keys are %v", keys)
	}
	// A mark of an older helper, which wrote any value.
	broker.Client().Set(t.Context(), key, "1", time.Hour)
	if _, err := in.Begin(t.Context(), inboxConsumer, event); !errors.Is(err, inbox.ErrDone) {
		t.Errorf("begin: %v, want %v", err, inbox.ErrDone)
	}
}

func TestCheckAndMarkProcessed(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{TTL: inbox.TTL{Done: 48 * time.Hour, Horizon: 24 * time.Hour}})
	check := func(want bool, wantErr error) {
		t.Helper()
		processed, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, 0)
		if processed != want || !errors.Is(err, wantErr) {
			t.Fatalf("processed: %t, %v; want %t, %v", processed, err, want, wantErr)
		}
	}
	remove := func(wantErr error) {
		t.Helper()
		if err := in.Delete(t.Context(), inboxConsumer, event); !errors.Is(err, wantErr) {
			t.Fatalf("delete: %v, want %v", err, wantErr)
		}
	}
	check(false, nil)
	check(true, nil)
	remove(nil)
	remove(nil)
	check(false, nil)
	ran, err := inbox.Handle(t.Context(), in, inboxConsumer, event, func(context.Context) error { return nil })
	if ran || err != nil {
		t.Errorf("an event that is marked was handled: %t, %v", ran, err)
	}
	remove(nil)
	ran, err = inbox.Handle(t.Context(), in, inboxConsumer, event, func(context.Context) error {
		check(false, inbox.ErrInProgress)
		remove(inbox.ErrInProgress)
		return nil
	})
	if !ran || err != nil {
		t.Errorf("handled: %t, %v", ran, err)
	}
	check(true, nil)

	for name, call := range map[string]func() error{
		"remembered": func() error {
			_, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, time.Millisecond)
			return err
		},
		"delivered again for 24h": func() error {
			_, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, time.Hour)
			return err
		},
		"no name": func() error { _, err := in.CheckAndMarkProcessed(t.Context(), "", event, 0); return err },
		"no id":   func() error { return in.Delete(t.Context(), inboxConsumer, uuid.Nil) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// TestCheckAndMarkRace has 64 goroutines mark an event: one of them is the first.
func TestCheckAndMarkRace(t *testing.T) {
	t.Parallel()
	broker, event := redistest.New(t), uuid.New()
	in := openInbox(t, broker.URL(), redisinbox.Config{})
	var first atomic.Int32
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			processed, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, time.Hour)
			if err != nil {
				t.Error(err)
			}
			if !processed {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if n := first.Load(); n != 1 {
		t.Errorf("%d were the first", n)
	}
}

func TestInboxConfig(t *testing.T) {
	t.Parallel()
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() }) // it was never connected
	for words, config := range map[string]redisinbox.Config{
		"Client is missing":       {},
		"delivered again for 24h": {Client: client, TTL: inbox.TTL{Done: time.Hour, Horizon: 24 * time.Hour}},
		"processing TTL":          {Client: client, TTL: inbox.TTL{Processing: time.Millisecond}},
	} {
		if _, err := redisinbox.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

// TestInboxWarnsOfEviction sees one warning where Redis may evict, or does not say.
func TestInboxWarnsOfEviction(t *testing.T) {
	t.Parallel()
	for policy, words := range map[string]string{
		"noeviction": "", "allkeys-lru": "maxmemory_policy=allkeys-lru", "volatile-ttl": "maxmemory_policy=volatile-ttl", "forbidden": "could not ask Redis",
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			broker := redistest.New(t)
			commands := []any{"config", "set", "maxmemory-policy", policy}
			if policy == "forbidden" {
				commands = []any{"acl", "setuser", "default", "-info", "-config"}
			}
			if err := broker.Client().Do(t.Context(), commands...).Err(); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			// At the start, or later if Redis is away then.
			for _, later := range []bool{false, true} {
				log.Reset()
				if later {
					broker.Stop(t)
				}
				in := openInbox(t, broker.URL(), redisinbox.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if later {
					if log.Len() > 0 {
						t.Errorf("a Redis that is away: %s", log.String())
					}
					broker.Start(t)
					if err := broker.Client().Do(t.Context(), commands...).Err(); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					if _, err := in.Begin(t.Context(), inboxConsumer, uuid.New()); err != nil {
						t.Fatal(err)
					}
				}
				if text := log.String(); !strings.Contains(text, words) || words == "" && text != "" || strings.Count(text, "\n") > 1 {
					t.Errorf("it logged %q, want %q", text, words)
				}
			}
		})
	}
}
