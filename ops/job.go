package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/ops/view"
)

const (
	// defaultBatch and maxBatch are how many events one transaction changes.
	defaultBatch = 1000
	maxBatch     = 10_000
	// batchTimeout ends a batch that waits for a lock.
	batchTimeout = time.Minute
)

// Retry makes dead events due again, with the same ids and no attempts counted. It works in batches; each is committed
// whole, together with its entry in the audit log.
func (o *Outbox) Retry(ctx context.Context, filter Filter, change Change) (*Result, error) {
	filter.State = StateDead
	return o.change(ctx, OperationRetry, filter, change)
}

// Hold keeps parked events, and all later ones of their keys, from being published until a person releases them.
func (o *Outbox) Hold(ctx context.Context, filter Filter, change Change) (*Result, error) {
	return o.change(ctx, OperationHold, filter, change)
}

// Release makes held events due.
func (o *Outbox) Release(ctx context.Context, filter Filter, change Change) (*Result, error) {
	filter.State = StateHeld
	return o.change(ctx, OperationRelease, filter, change)
}

func (o *Outbox) change(ctx context.Context, operation Operation, filter Filter, change Change) (*Result, error) {
	if err := o.prepare(ctx, operation, &filter, &change); err != nil {
		return nil, err
	}
	if change.DryRun {
		return o.count(ctx, operation, &filter, change.Before)
	}
	result := &Result{Before: change.Before}
	record, err := o.begin(ctx, operation, change.Actor, request{Filter: filter, Before: change.Before}, result)
	if err != nil {
		return nil, err
	}
	step := o.backend.Steps(operation, &filter, change.Before, change.BatchSize)
	for more := true; more && err == nil; {
		if ctx.Err() != nil {
			result.Interrupted = true
			break
		}
		var ids []uuid.UUID
		if ids, more, err = o.batch(ctx, record, step); err != nil {
			break
		}
		result.Events += int64(len(ids))
		if len(filter.IDs) > 0 {
			result.IDs = append(result.IDs, ids...)
		}
		if change.Progress != nil {
			change.Progress(result.Events)
		}
	}
	return result, o.end(ctx, operation, record, result, err)
}

// batch runs one step in one transaction, with its note in the audit log. The end of ctx does not stop it, so a
// step is done entirely or not at all.
func (o *Outbox) batch(ctx context.Context, record *audit.Record, step view.Step) (ids []uuid.UUID, more bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, o.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		if ids, more, err = step(ctx, tx); err != nil || len(ids) == 0 {
			return err
		}
		return record.Note(ctx, tx, int64(len(ids)), ids)
	})
	return ids, more, err
}

// count is a dry run.
func (o *Outbox) count(ctx context.Context, operation Operation, filter *Filter, before time.Time) (*Result, error) {
	result := &Result{DryRun: true, Before: before}
	var err error
	result.Events, result.AtLeast, err = o.backend.Count(ctx, operation, filter, before)
	if err != nil {
		return nil, o.wrap("count the events", err)
	}
	return result, nil
}

// prepare checks the arguments and fills in defaults.
func (o *Outbox) prepare(ctx context.Context, operation Operation, filter *Filter, change *Change) error {
	if err := o.about.Check(operation); err != nil {
		return err
	}
	if err := check(filter, &o.about); err != nil {
		return err
	}
	switch {
	case filter.Empty() && (operation == OperationHold || operation == OperationReplay):
		return fmt.Errorf("outbox: %w: say what to %s, such as an id, a type or a key", ErrFilter, operation)
	case change.BatchSize == 0:
		change.BatchSize = defaultBatch
	case change.BatchSize < 1 || change.BatchSize > maxBatch:
		return fmt.Errorf("outbox: %w: the batch size is %d; choose 1 to %d", ErrFilter, change.BatchSize, maxBatch)
	}
	if change.Before.IsZero() { // the time is the database's
		if err := o.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&change.Before); err != nil {
			return fmt.Errorf("outbox: read the database's clock: %w", err)
		}
		change.Before = change.Before.UTC()
	}
	return o.backend.Ready(ctx)
}

// request is the request as the audit log records it.
type request struct {
	Filter Filter    `json:"filter"`
	Before time.Time `json:"before,omitzero"`
	Rate   int       `json:"rate,omitempty"`
}

// begin begins an entry of the audit log, if there is a log.
func (o *Outbox) begin(ctx context.Context, operation Operation, actor string, request any, result *Result) (*audit.Record, error) {
	record, err := o.log.Begin(ctx, operation, actor, request)
	if result.Audit = record.ID(); record == nil && err == nil {
		result.Unaudited = audit.Missing
	}
	return record, err
}

// end ends the entry. If events were changed it wakes the relays.
func (o *Outbox) end(ctx context.Context, operation Operation, record *audit.Record, result *Result, err error) error {
	if result.Events > 0 && operation != OperationPurge {
		_ = o.backend.Wake(context.WithoutCancel(ctx)) // if it fails relays poll
	}
	return record.End(ctx, result.Interrupted, o.wrap(string(operation)+" events", err))
}
