package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestTogether has the outbox refuse: then nothing of the turn is finalised either. And the other
// way round, a turn that is refused leaves no message.
func TestTogether(t *testing.T) {
	t.Parallel()
	c, id := openChat(t, nowhere)
	one := newTurn(id)
	if err := c.begin(t.Context(), one, "one two three"); err != nil {
		t.Fatal(err)
	}
	wantTenant(t, c, id, tenant{Reserved: 16})
	pgtest.Exec(t, c.pool, `ALTER TABLE modkit_outbox_events ADD CONSTRAINT full_disk CHECK (false)`)
	if _, _, err := c.finalise(t.Context(), one, "completed", "four"); err == nil {
		t.Error("it was finalised without its message")
	}
	wantTenant(t, c, id, tenant{Reserved: 16})
	pgtest.Exec(t, c.pool, `ALTER TABLE modkit_outbox_events DROP CONSTRAINT full_disk`)

	for _, try := range []struct {
		turn    turn
		outcome string
		want    error
	}{
		{newTurn(id), "completed", errUnknownTurn},
		{one, "forgotten", errOutcome},
	} {
		if _, _, err := c.finalise(t.Context(), try.turn, try.outcome, ""); !errors.Is(err, try.want) {
			t.Errorf("%s: %v, want %v", try.outcome, err, try.want)
		}
	}
	if n := ask(t, c.pool, `SELECT count(*) FROM modkit_outbox_events`); n != 0 {
		t.Errorf("%d messages of nothing", n)
	}
	if used, _, err := c.finalise(t.Context(), one, "completed", "four"); err != nil || used.Tokens != 4 {
		t.Errorf("%+v: %v", used, err)
	}
	wantTenant(t, c, id, tenant{Used: 4})
}

// TestRace finalises one turn many times at once: all are told of one message, and one of them
// wrote it.
func TestRace(t *testing.T) {
	t.Parallel()
	c, id := openChat(t, nowhere)
	one := newTurn(id)
	for range 2 { // the second changes nothing
		if err := c.begin(t.Context(), one, "one two three"); err != nil {
			t.Fatal(err)
		}
	}
	const racers = 8
	var list [racers]modkit.Enqueued
	var errs [racers]error
	var running sync.WaitGroup
	for i := range racers {
		running.Go(func() { _, list[i], errs[i] = c.finalise(t.Context(), one, "completed", "") })
	}
	running.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	first := 0
	for _, emitted := range list {
		if !emitted.AlreadyEnqueued {
			first++
		}
		if emitted.ID != list[0].ID {
			t.Errorf("messages %s and %s", emitted.ID, list[0].ID)
		}
	}
	if first != 1 {
		t.Errorf("%d of them enqueued it", first)
	}
	wantTenant(t, c, id, tenant{Used: 3})
}

// TestBrokerFrozen has the broker not answer: no message is to blame.
func TestBrokerFrozen(t *testing.T) {
	t.Parallel()
	nats := natstest.Bare(t, natstest.Settings{})
	c, id := openChat(t, nats.URL())
	message := modkit.ClaimedMessage{ID: uuid.New(), Topic: topic, TenantID: id, DedupeKey: newTurn(id).dedupeKey(), Payload: []byte(`{}`)}
	if err := c.publish(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	nats.Freeze(t)
	message.ID = uuid.New()
	if err := c.publish(t.Context(), message); outbox.Classify(err) != outbox.ClassUnavailable {
		t.Error(err)
	}
	nats.Thaw(t)
}

// TestRequests has requests that no turn comes of.
func TestRequests(t *testing.T) {
	t.Parallel()
	c, id := openChat(t, nowhere)
	server := httptest.NewServer(c.routes())
	t.Cleanup(server.Close)
	web := &client{chat: server.URL}
	t.Cleanup(web.http.CloseIdleConnections)
	for words, err := range map[string]error{
		"UUIDs that the client makes": web.begin(t.Context(), turn{Tenant: id}, "hello"),
		"NUL":                         web.begin(t.Context(), newTurn(id), "hel\x00lo"),
		"negative":                    web.setQuota(t.Context(), id, -5),
		"quota does not suffice":      web.begin(t.Context(), newTurn(uuid.New()), "hello"),
	} {
		var refused *refusal
		if !errors.As(err, &refused) || refused.status >= http.StatusInternalServerError || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// TestDead has the broker refuse a message for good: it is dead, and shows as that, until somebody
// has mended the cause and has it retried.
func TestDead(t *testing.T) {
	t.Parallel()
	nats := natstest.Bare(t, natstest.Settings{})
	js, err := jetstream.New(nats.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	narrow := jetstream.StreamConfig{Name: stream, Subjects: []string{namespace + "." + topic}, MaxMsgSize: 10}
	if _, err := js.CreateStream(t.Context(), narrow); err != nil {
		t.Fatal(err)
	}
	c, id := openChat(t, nats.URL())
	b := openBilling(t, nats.URL())
	one := newTurn(id)
	if err := c.begin(t.Context(), one, "one two three"); err != nil {
		t.Fatal(err)
	}
	_, message, err := c.finalise(t.Context(), one, "completed", "")
	if err != nil {
		t.Fatal(err)
	}
	startDispatcher(t, c)
	server := httptest.NewServer(c.routes())
	t.Cleanup(server.Close)
	web := &client{chat: server.URL}
	t.Cleanup(web.http.CloseIdleConnections)
	await.Until(t, "the message to be dead", func() bool {
		messages, err := web.outbox(t.Context())
		return err == nil && messages == outboxAnswer{Dead: 1}
	})
	wantTenant(t, c, id, tenant{Used: 3}) // it was used all the same
	narrow.MaxMsgSize = -1
	if _, err := js.UpdateStream(t.Context(), narrow); err != nil {
		t.Fatal(err)
	}
	if err := web.retry(t.Context(), message.ID); err != nil {
		t.Fatal(err)
	}
	startConsumer(t, b)
	await.Until(t, "the usage to be counted", func() bool {
		a, err := b.account(t.Context(), id)
		return err == nil && a == account{Turns: 1, Tokens: 3}
	})
}
