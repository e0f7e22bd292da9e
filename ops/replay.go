package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops/view"
)

// Replay publishes delivered events again, with the same ids and in order. It parks copies of a stream's events for the
// relay, and publishes a queue table's events itself, to Replay.Publisher. The events themselves do not change.
func (o *Outbox) Replay(ctx context.Context, filter Filter, replay Replay) (*Result, error) {
	filter.State = StateDelivered
	if err := o.prepare(ctx, OperationReplay, &filter, &replay.Change); err != nil {
		return nil, err
	}
	switch relays := o.about.RelayReplays; {
	case replay.Rate < 0:
		return nil, fmt.Errorf("outbox: %w: the rate of a replay is negative", ErrFilter)
	case relays && replay.Publisher != nil:
		return nil, fmt.Errorf("outbox: %w: the relay of %s publishes replayed events; leave out the destination", ErrFilter, o.about.Name)
	case relays && filter.Error != "":
		return nil, fmt.Errorf("outbox: %w: %s keeps no errors of delivered events", ErrFilter, o.about.Name)
	case replay.DryRun:
		return o.count(ctx, OperationReplay, &filter, time.Time{})
	case !relays && replay.Publisher == nil:
		return nil, fmt.Errorf("outbox: %w: a replay of %s needs a destination to publish to", ErrFilter, o.about.Name)
	}
	result := &Result{}
	record, err := o.begin(ctx, OperationReplay, replay.Actor, request{Filter: filter, Rate: replay.Rate}, result)
	if err != nil {
		return nil, err
	}
	result.Events, err = o.backend.Replay(ctx, &filter, view.Replay{
		Rate: replay.Rate, Publisher: replay.Publisher, DefaultTopic: replay.DefaultTopic, Progress: replay.Progress,
		Note: func(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) error {
			return record.Note(ctx, tx, int64(len(ids)), ids)
		},
	})
	if ctx.Err() != nil && err != nil {
		result.Interrupted, err = true, nil
	}
	return result, o.end(ctx, OperationReplay, record, result, err)
}
