package redis_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestUnknownStream(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	messages := publishertest.Messages(2)
	messages[0].Topic, messages[1].Topic = "payments", ""
	errs := publishertest.Publish(t, open(t, broker.URL()), messages)
	ofStream(t, errs[0], `unknown stream "payments"`, "?create=true")
	publishertest.Fails(t, errs[1], outbox.ClassUnavailable, "--topic-default")
	if n := broker.Client().Exists(t.Context(), "payments").Val(); n != 0 {
		t.Error("the stream was created silently")
	}
	if err := publishertest.Publish(t, open(t, broker.URL()+"?create=true"), messages)[0]; err != nil {
		t.Error(err)
	}
}

// TestServerTakesNothing provokes what is nobody's fault: each time Publish and Ping say that Redis
// is unavailable, and both work when it is over.
func TestServerTakesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begin, end []any
		words      string
	}{
		"out of memory": {[]any{"config", "set", "maxmemory", "1"}, []any{"config", "set", "maxmemory", "0"}, "OOM"},
		"read-only":     {[]any{"replicaof", "127.0.0.1", "1"}, []any{"replicaof", "no", "one"}, "READONLY"},
		"no replicas":   {[]any{"config", "set", "min-replicas-to-write", "1"}, []any{"config", "set", "min-replicas-to-write", "0"}, "NOREPLICAS"},
		"no scripts":    {[]any{"acl", "setuser", "default", "-evalsha"}, []any{"acl", "setuser", "default", "+evalsha"}, "NOPERM"},
		"no permission": {[]any{"acl", "setuser", "default", "-xadd"}, []any{"acl", "setuser", "default", "+xadd"}, "can't run this command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := redistest.New(t)
			publisher := open(t, broker.URL())
			if err := broker.Client().Do(t.Context(), test.begin...).Err(); err != nil {
				t.Fatal(err)
			}
			publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, test.words)
			for _, err := range publishertest.Publish(t, publisher, publishertest.Messages(3)) {
				publishertest.Fails(t, err, outbox.ClassUnavailable, test.words)
			}
			publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, test.words)
			if err := broker.Client().Do(t.Context(), test.end...).Err(); err != nil {
				t.Fatal(err)
			}
			if err := publisher.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if n := len(broker.Received(t)); n != 0 {
				t.Errorf("%d messages arrived; a ping leaves nothing", n)
			}
			for _, err := range publishertest.Publish(t, publisher, publishertest.Messages(3)) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAuthRefused(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	host := strings.TrimPrefix(broker.URL(), "redis://")
	if err := broker.Client().Do(t.Context(), "acl", "setuser", "app", "on", ">s3cret", "-@all", "+xadd", "+evalsha", "+eval", "+select", "~orders").Err(); err != nil {
		t.Fatal(err)
	}
	for url, words := range map[string]string{
		"redis://app:s3cret-wrong@" + host:   "WRONGPASS",
		"redis://app:s3cret@" + host + "/99": "DB index",
	} {
		publisher := open(t, url)
		publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, words)
		err := publishertest.Publish(t, publisher, publishertest.Messages(1))[0]
		publishertest.Fails(t, err, outbox.ClassUnavailable, words)
		if !outbox.IsMisconfigured(err) {
			t.Errorf("waiting does not help, but: %v", err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the password shows: %v", err)
		}
	}
	// A user for one stream only.
	publisher := open(t, "redis://app:s3cret@"+host)
	messages := publishertest.Messages(2)
	messages[1].Topic = "payments"
	if err := publisher.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	errs := publishertest.Publish(t, publisher, messages)
	if errs[0] != nil {
		t.Error(errs[0])
	}
	ofStream(t, errs[1], `the stream "payments"`, "NOPERM")
	// A password that came later.
	if err := broker.Client().ConfigSet(t.Context(), "requirepass", "s3cret").Err(); err != nil {
		t.Fatal(err)
	}
	publishertest.Away(t, publishertest.Publish(t, open(t, broker.URL()), messages[:1])[0], false, true, "unauthenticated")
	publishertest.Away(t, open(t, broker.URL()).Ping(t.Context()), false, true, "auth")
}

// ofStream fails unless an error is about one stream alone, and a person has to mend it.
func ofStream(t testing.TB, err error, words ...string) {
	t.Helper()
	publishertest.Fails(t, err, outbox.ClassUnavailable, words...)
	var away *outbox.UnavailableError
	if !errors.As(err, &away) || !away.Topic || !away.Setting {
		t.Errorf("%v: want it to be about the stream, and a setting", err)
	}
}

// TestPingTopic asks about streams that are there, missing, something else, and another user's.
func TestPingTopic(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	if err := broker.Client().Set(t.Context(), "text", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	broker.Create(t, "secret")
	rights := "~" + publishertest.Topic + " ~text ~missing +xadd +eval +evalsha"
	for name, more := range map[string]string{"who may ask": " +type", "who may add only": ""} {
		url := broker.Grant(t, rights+more)
		publisher := open(t, url)
		if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ofStream(t, publisher.PingTopic(t.Context(), "secret"), `the stream "secret"`)
		missing, text := publisher.PingTopic(t.Context(), "missing"), publisher.PingTopic(t.Context(), "text")
		if more == "" {
			if missing != nil || text != nil {
				t.Errorf("%s: %v, %v", name, missing, text)
			}
			continue
		}
		ofStream(t, missing, `unknown stream "missing"`)
		ofStream(t, text, `the key "text" is no stream`)
		if err := open(t, url+"?create=true").PingTopic(t.Context(), "missing"); err != nil {
			t.Errorf("a stream that will be created: %v", err)
		}
	}
	if n := broker.Client().Exists(t.Context(), "missing").Val() + int64(len(broker.Received(t))); n != 0 {
		t.Error("a ping left something behind")
	}
}

func TestWrongType(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	if err := broker.Client().Set(t.Context(), "text", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	messages := publishertest.Messages(7)
	plan := []struct{ stream, key, fate string }{
		{"text", "a", "fails"}, {"text", "a", "waits"}, {publishertest.Topic, "a", "waits"}, {"text", "b", "fails"},
		{publishertest.Topic, "c", "arrives"}, {"text", "", "fails"}, {"text", "", "fails"},
	}
	for i, p := range plan {
		messages[i].Topic, messages[i].Key = p.stream, p.key
	}
	for i, err := range publishertest.Publish(t, open(t, broker.URL()), messages) {
		switch plan[i].fate {
		case "fails":
			ofStream(t, err, `the key "text" is no stream`, "WRONGTYPE")
		case "waits":
			if !errors.Is(err, outbox.ErrNotAttempted) {
				t.Errorf("message %d, after a failure of its key: %v", i, err)
			}
		case "arrives":
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
	}
	if n := len(broker.Received(t)); n != 1 {
		t.Errorf("%d messages arrived, want 1", n)
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	messages := publishertest.Messages(5)
	messages[0].Payload = make([]byte, 2000)
	messages[1].Headers = map[string]string{"payload": "x"}
	messages[2].Headers = map[string]string{"key": "x"}
	messages[3].Headers = make(map[string]string)
	for i := range 3000 {
		messages[3].Headers[strconv.Itoa(i)] = ""
	}
	errs := publishertest.Publish(t, open(t, broker.URL()+"?max-size=1000"), messages)
	for i, words := range []string{"the limit is 1000", `the header "payload"`, `the header "key"`, "3000 headers"} {
		publishertest.Fails(t, errs[i], outbox.ClassTerminal, words)
	}
	if errs[4] != nil || len(broker.Received(t)) != 1 {
		t.Errorf("the good message: %v; %d arrived", errs[4], len(broker.Received(t)))
	}
}

// TestManyHeaders has as many fields as are allowed.
func TestManyHeaders(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	messages := publishertest.Messages(1)
	for i := range 2980 {
		messages[0].Headers[strconv.Itoa(i)] = "x"
	}
	if err := publishertest.Publish(t, open(t, broker.URL()), messages)[0]; err != nil {
		t.Error(err)
	}
}

// TestSlowBroker has a deadline pass, or the call cancelled, while Redis holds its answer back: a call ends with its
// context, and what was not sent by then is not counted as tried.
func TestSlowBroker(t *testing.T) {
	t.Parallel()
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		endsSilent(t, func(ctx context.Context, _ *redistest.Broker) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second) // nothing has to happen in it
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		endsSilent(t, func(ctx context.Context, broker *redistest.Broker) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				defer cancel()
				await.Check(t, "Redis to hold a call back", func() bool {
					return strings.Contains(broker.Client().Info(t.Context(), "clients").Val(), "blocked_clients:1")
				})
			}()
			return ctx, cancel
		})
	})
}

func endsSilent(t *testing.T, end func(context.Context, *redistest.Broker) (context.Context, context.CancelFunc)) {
	t.Helper()
	broker := redistest.New(t)
	publisher := open(t, broker.URL())
	publisher.WaitForAnswers()
	publishertest.Deliver(t, publisher, publishertest.Messages(1)) // it is connected
	if err := broker.Client().Do(t.Context(), "client", "pause", "3600000", "write").Err(); err != nil {
		t.Fatal(err)
	}
	// Before the publisher is closed, which waits for its calls.
	t.Cleanup(func() {
		if err := broker.Client().Do(context.Background(), "client", "unpause").Err(); err != nil {
			t.Error(err)
		}
	})
	messages := publishertest.Messages(1500)
	ctx, cancel := end(t.Context(), broker)
	defer cancel()
	errs := publishertest.Ends(t, func() []error { return publisher.Publish(ctx, messages) })
	publishertest.Fails(t, errs[0], outbox.ClassUnclear, "no answer of Redis in time")
	if !errors.Is(errs[1499], outbox.ErrNotAttempted) {
		t.Errorf("the last message, which was not sent: %v", errs[1499])
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	publisher := open(t, broker.URL())
	broker.Stop(t)
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "refused")
	for i, err := range publishertest.Publish(t, publisher, publishertest.Messages(1500)) {
		if i < 1000 {
			publishertest.Fails(t, err, outbox.ClassUnavailable, "refused")
		} else if !errors.Is(err, outbox.ErrNotAttempted) {
			t.Fatalf("message %d, of the second round trip: %v", i, err)
		}
	}
}

// TestClusterDown has a cluster that lost the slot of the stream.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	broker := redistest.NewCluster(t)
	slot := broker.Client().ClusterKeySlot(t.Context(), publishertest.Topic).Val()
	if err := broker.Client().ClusterDelSlots(t.Context(), int(slot)).Err(); err != nil {
		t.Fatal(err)
	}
	publishertest.Fails(t, publishertest.Publish(t, open(t, broker.URL()), publishertest.Messages(1))[0], outbox.ClassUnavailable, "CLUSTERDOWN")
}

// TestStrangeServer asks a Redis that has no scripts, as some proxies have none: that is no event's fault.
func TestStrangeServer(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t, "--rename-command", "evalsha", "")
	err := publishertest.Publish(t, open(t, broker.URL()), publishertest.Messages(1))[0]
	publishertest.Fails(t, err, outbox.ClassUnclear, "unknown command")
}

// TestExhaustedStream adds to a stream whose ids are used up: that is no event's fault, and other streams go on.
func TestExhaustedStream(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	broker.Create(t, "payments")
	const last = "18446744073709551615-18446744073709551615"
	if err := broker.Client().Do(t.Context(), "xadd", publishertest.Topic, last, "a", "b").Err(); err != nil {
		t.Fatal(err)
	}
	messages := publishertest.Messages(2)
	messages[1].Topic = "payments"
	errs := publishertest.Publish(t, open(t, broker.URL()), messages)
	ofStream(t, errs[0], "takes no more")
	if errs[1] != nil {
		t.Error(errs[1])
	}
}
