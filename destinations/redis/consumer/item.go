package consumer

import (
	"context"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

// item is an entry in hand.
type item struct {
	id       string
	delivery consume.Delivery
	// ctx is the handler's. It ends early when another consumer takes the entry over.
	ctx  context.Context
	lose context.CancelCauseFunc
	// running and failed are guarded by the run's lock: it is being handled, or its last try failed.
	running, failed bool
}

// add takes an entry in hand, behind the earlier ones of its key. ctx is that of Run.
func (r *run) add(ctx context.Context, p pending) {
	if p.fields == nil {
		r.log.Error("an entry was trimmed before it was handled: the event is lost; let the stream be longer", "entry", p.id)
		return
	}
	i := &item{id: p.id, delivery: decode(r.config.Topic, p.fields, p.attempt)}
	i.ctx, i.lose = context.WithCancelCause(r.handling)
	r.mu.Lock()
	r.inHand[i.id] = i
	r.mu.Unlock()
	r.queues.Add(i.delivery.Message.Key, func() (bool, time.Duration) { return r.handle(ctx, i) })
}

// handle handles an entry once. A failed one asks to be run again and stays in its place, so that no later one of
// its key overtakes it.
func (r *run) handle(ctx context.Context, i *item) (again bool, after time.Duration) {
	if !r.begin(ctx, i) {
		return false, 0 // finish gives it back
	}
	if i.failed && i.ctx.Err() == nil {
		ours, err := r.retry(ctx, i)
		if err != nil {
			return r.end(ctx, i), time.Second // Redis is away
		}
		if !ours {
			i.lose(errTaken)
		}
	}
	if i.ctx.Err() != nil { // another has it
		r.drop(i)
		return false, 0
	}
	i.failed = false
	verdict := r.processor.Process(i.ctx, i.delivery)
	if verdict.Ack {
		r.ack(i)
		r.drop(i)
		return false, 0
	}
	i.failed = true
	return r.end(ctx, i), verdict.After
}

// begin reports whether an entry may be handled: not after the end of ctx.
func (r *run) begin(ctx context.Context, i *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i.running = ctx.Err() == nil
	return i.running
}

// end reports whether an entry that failed is to be tried again. After the end of ctx it is given back.
func (r *run) end(ctx context.Context, i *item) bool {
	r.mu.Lock()
	i.running = false
	stopped := ctx.Err() != nil
	r.mu.Unlock()
	if stopped {
		r.giveBack(i)
	}
	return !stopped
}

// drop lets go of an entry.
func (r *run) drop(i *item) {
	i.lose(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inHand, i.id)
	r.freed.Send()
}

// retry counts one more delivery of an entry. It reports whether the entry is still ours.
func (r *run) retry(ctx context.Context, i *item) (ours bool, err error) {
	counts, err := r.group.hold(ctx, again, i.id)
	if err != nil || counts[0] == taken {
		return false, err
	}
	i.delivery.Message.Attempt = max(int(counts[0]), i.delivery.Message.Attempt+1)
	return true, nil
}

// ack tries until Redis knows that an entry is done: its effect has happened.
func (r *run) ack(i *item) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.group.ack(r.handling, i.id)
		if err == nil {
			return
		}
		consuming.Pause(r.handling, pause)
		if r.handling.Err() != nil {
			r.log.Error("an event was handled and could not be acknowledged; it is delivered again",
				"event_id", i.delivery.Message.ID, "error", outbox.ErrorText(err))
			return
		}
	}
}

// giveBack lets another consumer have an entry at once. A delivery that was not begun does not count. If it fails,
// this entry and the others come later by themselves: a hanging Redis must not hold up the stop.
func (r *run) giveBack(i *item) {
	defer r.drop(i)
	if r.unheard.Load() {
		return
	}
	attempt := i.delivery.Message.Attempt
	if !i.failed {
		attempt--
	}
	if err := r.group.back(r.handling, i.id, max(attempt, 0)); err != nil && r.unheard.CompareAndSwap(false, true) {
		r.log.Warn("entries could not be given back; they come again after MinIdle", "error", outbox.ErrorText(err))
	}
}
