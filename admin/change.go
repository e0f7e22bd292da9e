package admin

import (
	"context"
	"errors"
	"time"

	"github.com/packfinderz/outbox/ops"
)

type change struct {
	operation ops.Operation
	filter    ops.Filter
	// all confirms that the filter is empty on purpose.
	all bool
	// before is when the preview was made: events that died since were not in it.
	before time.Time
	// rate bounds a replay, in events per second.
	rate int
}

// check rejects what the outbox does not support, and what the user cannot have meant.
func (ch *change) check(t *shown) error {
	if why, cannot := t.cannot(ch.operation); cannot {
		return badInput(errors.New(why))
	}
	switch ch.operation {
	case ops.OperationHold, ops.OperationRelease:
		if len(ch.filter.IDs) == 0 && ch.filter.Key == "" {
			return badInput(errors.New("name the events by id, or a key"))
		}
	case ops.OperationReplay:
		if ch.filter.Empty() {
			return badInput(errors.New("say which events to replay: a time, a type, a topic, a key or ids"))
		}
	default:
		if ch.filter.Empty() && !ch.all {
			return badInput(errors.New("say which events, or that you mean all of them"))
		}
	}
	return nil
}

// cannot says why an operation is not possible here.
func (t *shown) cannot(operation ops.Operation) (string, bool) {
	if why, cannot := t.about.Cannot[operation]; cannot {
		return why, true
	}
	if operation == ops.OperationReplay && !t.about.RelayReplays && t.Publisher == nil {
		return "A replay of a queue table is published from here, and this console has no destination (--to).", true
	}
	return "", false
}

// do makes the change, or counts what it would change.
func (ch *change) do(ctx context.Context, t *shown, actor string, dryRun bool, progress func(int64)) (*ops.Result, error) {
	how := ops.Change{Actor: actor, DryRun: dryRun, Before: ch.before, Progress: progress}
	switch ch.operation {
	case ops.OperationRetry:
		return t.Retry(ctx, ch.filter, how)
	case ops.OperationReplay:
		replay := ops.Replay{Change: how, Rate: ch.rate}
		if !t.about.RelayReplays {
			replay.Publisher, replay.DefaultTopic = t.Publisher, t.DefaultTopic
		}
		return t.Replay(ctx, ch.filter, replay)
	case ops.OperationHold:
		return t.Hold(ctx, ch.filter, how)
	case ops.OperationRelease:
		return t.Release(ctx, ch.filter, how)
	}
	return nil, badInput(errors.New("the console does not " + string(ch.operation)))
}

func (c *Console) preview(r *request, ch change) (*ops.Result, error) {
	if err := ch.check(r.outbox); err != nil {
		return nil, err
	}
	return ch.do(r.Context(), r.outbox, r.Name, true, nil)
}

// begin starts a change, and waits a moment for its end.
func (c *Console) begin(r *request, ch change) (*job, error) {
	if err := ch.check(r.outbox); err != nil {
		return nil, err
	}
	t, actor := r.outbox, r.Name
	log := c.log.With("operation", string(ch.operation), "target", t.Name, "actor", actor)
	w, err := t.jobs.start(ch.operation, actor, func(ctx context.Context, progress func(int64)) (*ops.Result, error) {
		result, err := ch.do(ctx, t, actor, false, progress)
		switch {
		case err != nil:
			log.Error("a change failed", "error", err)
		default:
			log.Info("a change was made", "events", result.Events, "interrupted", result.Interrupted)
		}
		return result, err
	})
	if err != nil {
		return nil, err
	}
	w.await(r.Context())
	return w, nil
}
