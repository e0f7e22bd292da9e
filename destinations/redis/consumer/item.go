package consumer

import (
	"context"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
)

// item is an entry in hand.
type item struct {
	id       string
	delivery consume.Delivery
	// ctx is the handler's. It ends early when another consumer takes the entry over.
	ctx  context.Context
	lose context.CancelCauseFunc
}

// add takes an entry in hand, behind the earlier ones of its key. ctx is that of Run.
func (r *run) add(ctx context.Context, p pending) {
	if p.fields == nil {
		r.log.Error("an entry was trimmed before it was handled: the event is lost; let the stream be longer", "entry", p.id)
		return
	}
	i := &item{id: p.id, delivery: decode(r.config.Topic, p.fields, p.attempt)}
	i.ctx, i.lose = context.WithCancelCause(r.handling)
	key := i.delivery.Message.Key
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inHand[i.id] = i
	if key == "" {
		r.running.Go(func() {
			r.handle(ctx, i)
			r.drop(i)
		})
		return
	}
	r.queues[key] = append(r.queues[key], i)
	if len(r.queues[key]) == 1 {
		r.running.Go(func() { r.handleKey(ctx, key, i) })
	}
}

// handleKey handles the entries of a key, one after the other.
func (r *run) handleKey(ctx context.Context, key string, i *item) {
	for i != nil {
		r.handle(ctx, i)
		r.drop(i)
		i = r.following(key)
	}
}

// following takes the first entry of a key off its queue, and is the one after it.
func (r *run) following(key string) *item {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.queues[key][1:]
	if len(left) == 0 {
		delete(r.queues, key)
		return nil
	}
	r.queues[key] = left
	return left[0]
}

// drop lets go of an entry.
func (r *run) drop(i *item) {
	i.lose(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inHand, i.id)
	select {
	case r.room <- struct{}{}:
	default: // it has been told
	}
}

// handle handles an entry until it is done: one that failed stays in its place, so that no later
// one of its key overtakes it. When ctx ends, what is not being handled is given back.
func (r *run) handle(ctx context.Context, i *item) {
	for {
		verdict, ran := r.process(ctx, i)
		switch {
		case !ran && ctx.Err() != nil:
			r.giveBack(i, i.delivery.Message.Attempt-1)
			return
		case !ran: // another has it
			return
		case verdict.Ack:
			r.ack(i)
			return
		}
		select {
		case <-time.After(verdict.After):
		case <-i.ctx.Done():
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			r.giveBack(i, i.delivery.Message.Attempt)
			return
		}
		if i.ctx.Err() != nil || !r.retry(ctx, i) {
			return
		}
	}
}

// process handles an entry once, when there is a slot for it.
func (r *run) process(ctx context.Context, i *item) (verdict consume.Verdict, ran bool) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-i.ctx.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil || i.ctx.Err() != nil {
		return verdict, false
	}
	return r.processor.Process(i.ctx, i.delivery), true
}

// retry counts one more delivery of an entry. It reports false when it is not ours any more, or
// when ctx ended and it was given back.
func (r *run) retry(ctx context.Context, i *item) bool {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		counts, err := r.group.hold(ctx, again, i.id)
		switch {
		case err == nil && counts[0] == taken:
			return false
		case err == nil:
			i.delivery.Message.Attempt = max(int(counts[0]), i.delivery.Message.Attempt+1)
			return true
		}
		consume.Pause(ctx, pause)
		if ctx.Err() != nil {
			r.giveBack(i, i.delivery.Message.Attempt)
			return false
		}
	}
}

// ack tries until Redis knows that an entry is done: its effect has happened.
func (r *run) ack(i *item) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.group.ack(r.handling, i.id)
		if err == nil {
			return
		}
		consume.Pause(r.handling, pause)
		if r.handling.Err() != nil {
			r.log.Error("an event was handled and could not be acknowledged; it is delivered again",
				"event_id", i.delivery.Message.ID, "error", outbox.ErrorText(err))
			return
		}
	}
}

// giveBack lets another consumer have an entry at once. If that fails it comes later, by itself, and
// so do the others: a Redis that does not answer must not hold up the stop.
func (r *run) giveBack(i *item, attempt int) {
	if r.unheard.Load() {
		return
	}
	if err := r.group.back(r.handling, i.id, max(attempt, 0)); err != nil && r.unheard.CompareAndSwap(false, true) {
		r.log.Warn("entries could not be given back; they come again after MinIdle", "error", outbox.ErrorText(err))
	}
}
