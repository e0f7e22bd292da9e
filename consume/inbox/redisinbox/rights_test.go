package redisinbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
)

// TestRights has a user with the rights that docs/consuming-redis.md asks for, and no more.
func TestRights(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	url := broker.Grant(t, "~pf:evt:processed:* +set +get +pttl +del +pexpire +evalsha +eval +info")
	var log bytes.Buffer
	in := openInbox(t, url, redisinbox.Config{TTL: inbox.TTL{Processing: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
}
