package redis_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/redis"
	"github.com/packfinderz/outbox/brokers/redis/redistest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/consumetest"
	"github.com/packfinderz/outbox/inbox"
)

// grant makes a user with just these rights, and answers the URL.
func grant(t *testing.T, broker *redistest.Broker, rights string) string {
	t.Helper()
	command := []any{"acl", "setuser", "app", "on", ">s3cret", "-@all"}
	for right := range strings.FieldsSeq(rights) {
		command = append(command, right)
	}
	if err := broker.Client().Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(broker.URL(), "//", "//app:s3cret@", 1)
}

// TestRights has users with the rights that docs/consuming.md asks for, and no more.
func TestRights(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	url := grant(t, broker, "~pf:evt:processed:* +set +get +pttl +del +pexpire +evalsha +eval +info +ping")
	var log bytes.Buffer
	in := openInbox(t, url, redis.InboxConfig{TTL: inbox.TTL{Processing: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := in.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	event := uuid.New()
	claim, err := in.Begin(t.Context(), inboxConsumer, event)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context) error{claim.Renew, claim.Finish} {
		if err := step(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := in.Delete(t.Context(), inboxConsumer, event); err != nil {
		t.Error(err)
	}
	if _, err := in.CheckAndMarkProcessed(t.Context(), inboxConsumer, event, 0); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}

	messages, handled := keyed(10, 2), consumetest.NewRecord()
	send(t, broker, messages)
	url = grant(t, broker, "~orders +xreadgroup +xack +xpending +xclaim +xrange +evalsha +eval +xgroup|delconsumer +xgroup|create")
	stop := startAt(t, url, redis.ConsumerConfig{Process: consume.Config{Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled.Add(m)
		if m.Attempt == 1 {
			return context.DeadlineExceeded
		}
		return nil
	})}})
	handled.Await(t, 20)
	awaitPending(t, broker, 0)
	stop()
	if consumers := broker.Client().XInfoConsumers(t.Context(), "orders", testGroup).Val(); len(consumers) > 0 {
		t.Errorf("the consumer did not leave: %+v", consumers)
	}
}

// TestConsumeCluster has the inbox and the stream in a cluster.
func TestConsumeCluster(t *testing.T) {
	t.Parallel()
	broker := redistest.NewCluster(t)
	messages, handled := keyed(100, 10), consumetest.NewRecord()
	in := openInbox(t, broker.URL()+"?cluster=true", redis.InboxConfig{})
	send(t, broker, messages)
	stop := startAt(t, broker.URL()+"?cluster=true", redis.ConsumerConfig{Process: consume.Config{Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, in, inboxConsumer, m.ID, func(context.Context) error {
			handled.Add(m)
			return nil
		})
		return err
	})}})
	ordered(t, messages, handled.Await(t, len(messages)))
	awaitPending(t, broker, 0)
	stop()
}
