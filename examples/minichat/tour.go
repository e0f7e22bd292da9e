package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// guide shows what the service does, step by step.
type guide struct {
	*client
	out io.Writer
}

// tour takes a walk through the service, over HTTP.
func tour(ctx context.Context, c *client, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	g := &guide{client: c, out: out}
	if err := g.payingTenant(ctx, uuid.New()); err != nil {
		return err
	}
	return g.tenantWithoutAccount(ctx, uuid.New())
}

func (g *guide) say(format string, args ...any) {
	_, _ = fmt.Fprintf(g.out, format+"\n", args...) // nobody may be listening
}

func newTurn(tenant uuid.UUID) turn {
	return turn{Tenant: tenant, Turn: uuid.New(), Request: uuid.New()}
}

// payingTenant ends turns in all three ways, one of them twice, and is refused one.
func (g *guide) payingTenant(ctx context.Context, id uuid.UUID) error {
	if err := g.setUp(ctx, id, 60, true); err != nil {
		return err
	}
	g.say("a tenant has a quota of 60 tokens and an account at billing")
	for _, end := range []struct{ outcome, reply string }{
		{"completed", "it will be sunny all day"},
		{"failed", ""},
		{"aborted", "it will"},
	} {
		t := newTurn(id)
		if err := g.begin(ctx, t, "what about the weather?"); err != nil {
			return err
		}
		first, err := g.finalise(ctx, t, end.outcome, end.reply)
		if err != nil {
			return err
		}
		g.say("a turn is %s: %d tokens used and event %s, in one transaction", first.Outcome, first.Tokens, first.Event)
		if end.outcome != "completed" {
			continue
		}
		again, err := g.finalise(ctx, t, "failed", "")
		if err != nil {
			return err
		}
		g.say("it is finalised again: still %s, already enqueued: %t, the same event: %t",
			again.Outcome, again.AlreadyEnqueued, again.Event == first.Event)
	}
	err := g.begin(ctx, newTurn(id), "tell me a story of a hundred words or more that has no end and no beginning and no middle")
	if refused := new(refusal); !errors.As(err, &refused) || refused.status != http.StatusTooManyRequests {
		return fmt.Errorf("a turn over the quota was not refused: %w", err)
	}
	g.say("a turn that the quota has no room for is refused, and has no event")
	t, err := g.billed(ctx, id, 3)
	if err != nil {
		return err
	}
	g.say("billing has counted %d turns and %d tokens; the quota says %d used", t.BilledTurns, t.BilledTokens, t.Used)
	return nil
}

// tenantWithoutAccount has an event that billing refuses until it is dead, and then not.
func (g *guide) tenantWithoutAccount(ctx context.Context, id uuid.UUID) error {
	if err := g.setUp(ctx, id, 60, false); err != nil {
		return err
	}
	t := newTurn(id)
	if err := g.begin(ctx, t, "is anybody there?"); err != nil {
		return err
	}
	ended, err := g.finalise(ctx, t, "completed", "yes")
	if err != nil {
		return err
	}
	g.say("a tenant without an account uses %d tokens: event %s fails and is tried again, later each time", ended.Tokens, ended.Event)
	var events outboxAnswer
	err = g.until(ctx, func() (bool, error) {
		events, err = g.outbox(ctx)
		return events.Dead > 0 && events.Waiting == 0, err
	})
	if err != nil {
		return err
	}
	g.say("its attempts are used up: %d dead, in the log, in GET /outbox and in outbox stats", events.Dead)
	if err := g.setUp(ctx, id, 60, true); err != nil {
		return err
	}
	if err := g.call(ctx, http.MethodPost, fmt.Sprintf("/outbox/%s/retry", ended.Event), nil, nil); err != nil {
		return err
	}
	counted, err := g.billed(ctx, id, 1)
	if err != nil {
		return err
	}
	g.say("the account is opened and the event retried by hand: billing has counted %d turn and %d tokens", counted.BilledTurns, counted.BilledTokens)
	return nil
}

// billed waits until billing has counted a number of turns.
func (g *guide) billed(ctx context.Context, id uuid.UUID, turns int64) (t tenant, err error) {
	err = g.until(ctx, func() (bool, error) {
		t, err = g.tenant(ctx, id)
		return t.BilledTurns == turns, err
	})
	return t, err
}

// until asks again and again.
func (g *guide) until(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the next step did not come: %w", ctx.Err())
		}
	}
}
