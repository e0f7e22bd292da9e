package main

import (
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestRedelivered has a dispatcher die between the broker and its ack: the message is published
// again. And billing is given it again: it is counted once.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	nats := natstest.Bare(t, natstest.Settings{})
	c, id := openChat(t, nats.URL())
	b := openBilling(t, nats.URL(), id)
	one := newTurn(id)
	if err := c.begin(t.Context(), one, "one two three"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.finalise(t.Context(), one, "aborted", ""); err != nil {
		t.Fatal(err)
	}
	gone, err := modkit.NewModule(c.pool, modkit.Config{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := gone.ClaimBatch(t.Context(), modkit.ClaimCfg{BatchSize: 10})
	if err != nil || len(messages) != 1 {
		t.Fatalf("claimed %d messages: %v", len(messages), err)
	}
	if err := c.publish(t.Context(), messages[0]); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, c.pool, `UPDATE modkit_outbox_events SET locked_until = now() - interval '1 second'`)
	startDispatcher(t, c)
	startConsumer(t, b)
	await.Until(t, "the message to be delivered again, and counted", func() bool {
		a, err := b.account(t.Context(), id)
		return err == nil && a.Turns > 0 &&
			count(t, c.pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered' AND attempts = 2`) == 1
	})
	// The broker knows a message that is sent twice; billing does not rely on it.
	m := messages[0]
	for range 2 {
		again := outbox.Message{Event: outbox.Event{ID: uuid.New(), Topic: m.Topic, DedupeKey: m.DedupeKey, Payload: m.Payload}}
		if err := b.bill(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	wantAccount(t, b, id, account{Turns: 1, Tokens: 3})
	wantTenant(t, c, id, tenant{Used: 3})
}

// TestForged has messages whose payload no retry can mend.
func TestForged(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	b := openBilling(t, nowhere, id)
	for _, payload := range []string{`7`, `{"tenant": "` + uuid.NewString() + `"}`} {
		message := outbox.Message{Event: outbox.Event{TenantID: id, DedupeKey: newTurn(id).dedupeKey(), Payload: []byte(payload)}}
		if err := b.bill(t.Context(), message); outbox.Classify(err) != outbox.ClassTerminal {
			t.Errorf("%s: %v", payload, err)
		}
	}
	wantAccount(t, b, id, account{})
}
