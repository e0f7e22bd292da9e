package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestRedelivered has a dispatcher die between the broker and its ack: the message is published
// again. And billing is given it again: it is counted once.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	nats := natstest.Bare(t, natstest.Settings{})
	c, id := openChat(t, nats.URL())
	b := openBilling(t, nats.URL())
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
			ask(t, c.pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered' AND attempts = 2`) == 1
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

// TestForged has messages that no retry can mend: they are kept as dead letters, and what comes
// after them is counted.
func TestForged(t *testing.T) {
	t.Parallel()
	nats := natstest.Bare(t, natstest.Settings{})
	c, id := openChat(t, nats.URL())
	b := openBilling(t, nats.URL())
	one := newTurn(id)
	unstorable := fmt.Sprintf(`{"tenant": %q, "turn": %q, "request": %q, "outcome": "a\u0000b", "tokens": %%d}`, one.Tenant, one.Turn, one.Request)
	forgeries := []string{`7`, `{"tenant": "` + uuid.NewString() + `"}`, fmt.Sprintf(unstorable, 1), fmt.Sprintf(unstorable, -1)}
	for _, payload := range forgeries {
		forged := modkit.ClaimedMessage{ID: uuid.New(), Topic: topic, TenantID: id, DedupeKey: one.dedupeKey(), Payload: []byte(payload)}
		if err := c.publish(t.Context(), forged); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.begin(t.Context(), one, "one two three"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.finalise(t.Context(), one, "completed", ""); err != nil {
		t.Fatal(err)
	}
	startDispatcher(t, c)
	startConsumer(t, b)
	js, err := jetstream.New(nats.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the dead letters, and the usage to be counted", func() bool {
		kept, err := js.Stream(t.Context(), stream)
		if err != nil {
			return false
		}
		info, err := kept.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		a, failed := b.account(t.Context(), id)
		return err == nil && failed == nil && info.State.Subjects[namespace+"."+deadTopic] == uint64(len(forgeries)) && a == account{Turns: 1, Tokens: 3}
	})
}

// TestBillingDatabaseAway has the database fail: the usage is not to blame, and is never a dead
// letter.
func TestBillingDatabaseAway(t *testing.T) {
	t.Parallel()
	b := openBilling(t, nowhere)
	one := usage{turn: newTurn(uuid.New()), Tokens: 1}
	payload, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	b.pool.Close()
	err = b.bill(t.Context(), outbox.Message{Event: outbox.Event{DedupeKey: one.dedupeKey(), Payload: payload}})
	if outbox.Classify(err) != outbox.ClassUnavailable {
		t.Error(err)
	}
}
