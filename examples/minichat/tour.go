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

// guide shows what the services do, step by step.
type guide struct {
	*client
	out     io.Writer
	process *child // billing
}

// tour takes a walk through the services, over HTTP.
func (g *guide) tour(ctx context.Context) error {
	walking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	id := uuid.New()
	if err := g.turns(walking, id); err != nil {
		return err
	}
	return g.billingAway(ctx, walking, id)
}

func (g *guide) say(format string, args ...any) {
	_, _ = fmt.Fprintf(g.out, format+"\n", args...) // nobody may be listening
}

func newTurn(tenant uuid.UUID) turn {
	return turn{Tenant: tenant, Turn: uuid.New(), Request: uuid.New()}
}

// turns ends some of a new tenant in all three ways, one of them twice, and is refused one.
func (g *guide) turns(ctx context.Context, id uuid.UUID) error {
	if err := g.setQuota(ctx, id, 60); err != nil {
		return err
	}
	g.say("a tenant has a quota of 60 tokens at the chat; billing is another process")
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
		g.say("a turn is %s: %d tokens used and message %s, in one transaction", first.Outcome, first.Tokens, first.Event)
		if end.outcome != "completed" {
			continue
		}
		again, err := g.finalise(ctx, t, "failed", "")
		if err != nil {
			return err
		}
		g.say("it is finalised again: still %s, already enqueued: %t, the same message: %t",
			again.Outcome, again.AlreadyEnqueued, again.Event == first.Event)
	}
	err := g.begin(ctx, newTurn(id), "tell me a story of a hundred words or more that has no end and no beginning and no middle")
	if refused := new(refusal); !errors.As(err, &refused) || refused.status != http.StatusTooManyRequests {
		return fmt.Errorf("a turn over the quota was not refused: %w", err)
	}
	g.say("a turn that the quota has no room for is refused, and has no message")
	return g.compare(ctx, id, 3)
}

// billingAway has billing end and come back. The process outlives this step, not the tour.
func (g *guide) billingAway(tour, ctx context.Context, id uuid.UUID) error {
	g.process.stop()
	t := newTurn(id)
	if err := g.begin(ctx, t, "is anybody there?"); err != nil {
		return err
	}
	if _, err := g.finalise(ctx, t, "completed", "yes"); err != nil {
		return err
	}
	if err := g.published(ctx); err != nil {
		return err
	}
	g.say("billing is away: a turn ends all the same, and the broker keeps its usage")
	if err := g.process.start(tour); err != nil {
		return err
	}
	g.billing = g.process.url
	g.say("billing is back")
	return g.compare(ctx, id, 4)
}

// published waits until the broker has all of the chat's messages.
func (g *guide) published(ctx context.Context) error {
	return g.until(ctx, func() (bool, error) {
		messages, err := g.outbox(ctx)
		return messages.Waiting == 0, err
	})
}

// compare waits until billing has counted a number of turns, and says how the two sides stand.
func (g *guide) compare(ctx context.Context, id uuid.UUID, turns int64) error {
	var counted account
	err := g.until(ctx, func() (_ bool, err error) {
		counted, err = g.account(ctx, id)
		return counted.Turns == turns, err
	})
	if err != nil {
		return err
	}
	t, err := g.tenant(ctx, id)
	if err != nil {
		return err
	}
	g.say("billing has counted %d turns and %d tokens; the chat says %d used", counted.Turns, counted.Tokens, t.Used)
	return nil
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
