package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// newChat is a service with a tenant, whose dispatcher does not run yet.
func newChat(t *testing.T) (*service, uuid.UUID) {
	t.Helper()
	db, err := database.Open(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := newService(t.Context(), db, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	if err := errors.Join(s.setQuota(t.Context(), id, 100), s.openAccount(t.Context(), id)); err != nil {
		t.Fatal(err)
	}
	return s, id
}

func wantTenant(t *testing.T, s *service, id uuid.UUID, want tenant) {
	t.Helper()
	want.Quota = 100
	if got, err := s.tenant(t.Context(), id); err != nil || got != want {
		t.Errorf("the tenant is %+v, want %+v: %v", got, want, err)
	}
}

// TestTogether has the outbox refuse: then nothing of the turn is finalised either. And the other
// way round, a turn that is refused leaves no event.
func TestTogether(t *testing.T) {
	t.Parallel()
	s, id := newChat(t)
	one := newTurn(id)
	if err := s.begin(t.Context(), one, "one two three"); err != nil {
		t.Fatal(err)
	}
	wantTenant(t, s, id, tenant{Reserved: 16})
	pgtest.Exec(t, s.pool, `ALTER TABLE modkit_outbox_events ADD CONSTRAINT full_disk CHECK (false)`)
	if _, _, err := s.finalise(t.Context(), one, "completed", "four"); err == nil {
		t.Error("it was finalised without its event")
	}
	wantTenant(t, s, id, tenant{Reserved: 16})
	pgtest.Exec(t, s.pool, `ALTER TABLE modkit_outbox_events DROP CONSTRAINT full_disk`)

	for _, c := range []struct {
		turn    turn
		outcome string
		want    error
	}{
		{newTurn(id), "completed", errUnknownTurn},
		{one, "forgotten", errOutcome},
	} {
		if _, _, err := s.finalise(t.Context(), c.turn, c.outcome, ""); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.outcome, err, c.want)
		}
	}
	if n := count(t, s.pool, `SELECT count(*) FROM modkit_outbox_events`); n != 0 {
		t.Errorf("%d events of nothing", n)
	}
	if used, _, err := s.finalise(t.Context(), one, "completed", "four"); err != nil || used.Tokens != 4 {
		t.Errorf("%+v: %v", used, err)
	}
	wantTenant(t, s, id, tenant{Used: 4})
}

// TestRace finalises one turn many times at once: all are told of one event, and one of them
// wrote it.
func TestRace(t *testing.T) {
	t.Parallel()
	s, id := newChat(t)
	one := newTurn(id)
	for range 2 { // the second changes nothing
		if err := s.begin(t.Context(), one, "one two three"); err != nil {
			t.Fatal(err)
		}
	}
	const racers = 8
	var list [racers]modkit.Enqueued
	var errs [racers]error
	var running sync.WaitGroup
	for i := range racers {
		running.Go(func() { _, list[i], errs[i] = s.finalise(t.Context(), one, "completed", "") })
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
			t.Errorf("events %s and %s", emitted.ID, list[0].ID)
		}
	}
	if first != 1 {
		t.Errorf("%d of them enqueued it", first)
	}
	wantTenant(t, s, id, tenant{Used: 3})
}

// TestRedelivered has a dispatcher die between billing and its ack: the event comes again, and is
// counted once.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	s, id := newChat(t)
	one := newTurn(id)
	if err := s.begin(t.Context(), one, "one two three"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.finalise(t.Context(), one, "aborted", ""); err != nil {
		t.Fatal(err)
	}
	gone, err := modkit.NewModule(s.pool, modkit.Config{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := gone.ClaimBatch(t.Context(), modkit.ClaimCfg{BatchSize: 10})
	if err != nil || len(messages) != 1 {
		t.Fatalf("claimed %d messages: %v", len(messages), err)
	}
	if err := s.bill(t.Context(), messages[0]); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, s.pool, `UPDATE modkit_outbox_events SET locked_until = now() - interval '1 second'`)
	if err := s.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.dispatcher.Stop()
	await.Until(t, "the event to be delivered again", func() bool {
		return count(t, s.pool, `SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered' AND attempts = 2`) == 1
	})
	wantTenant(t, s, id, tenant{Used: 3, BilledTurns: 1, BilledTokens: 3})
}

// TestForged has events whose payload no retry can mend.
func TestForged(t *testing.T) {
	t.Parallel()
	s, id := newChat(t)
	for _, payload := range []string{`7`, `{"tenant": "` + uuid.NewString() + `"}`} {
		message := modkit.ClaimedMessage{TenantID: id, DedupeKey: newTurn(id).dedupeKey(), Payload: []byte(payload)}
		if err := s.bill(context.Background(), message); outbox.Classify(err) != outbox.ClassTerminal {
			t.Errorf("%s: %v", payload, err)
		}
	}
}
