package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
)

// job is a change that goes on in batches.
type job struct {
	operation Operation
	change    Change
	// request is what the audit log says of it.
	request any
	// keepIDs is set where the result lists the events.
	keepIDs bool
	// step changes one batch in a transaction, and reports whether there is more to do.
	step func(ctx context.Context, tx pgx.Tx) (ids []uuid.UUID, more bool, err error)
}

// batchTimeout ends a batch that a lock holds up.
const batchTimeout = time.Minute

// run goes through the batches of a job. When ctx ends, the batch that is under way is
// finished first: what is done is done whole, and written down.
func (l *auditLog) run(ctx context.Context, j job) (*Result, error) {
	result := &Result{Before: j.change.Before}
	entry, err := l.open(ctx, j.operation, j.change, j.request, result)
	if err != nil {
		return nil, err
	}
	for more := true; more; {
		if ctx.Err() != nil {
			result.Interrupted = true
			break
		}
		var ids []uuid.UUID
		if ids, more, err = l.batch(ctx, entry, j.step); err != nil {
			break
		}
		result.Events += int64(len(ids))
		if j.keepIDs {
			result.IDs = append(result.IDs, ids...)
		}
		if j.change.Progress != nil {
			j.change.Progress(result.Events)
		}
	}
	return result, l.close(ctx, entry, result, err)
}

// batch is one transaction.
func (l *auditLog) batch(
	ctx context.Context, entry int64, step func(context.Context, pgx.Tx) ([]uuid.UUID, bool, error),
) (ids []uuid.UUID, more bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		if ids, more, err = step(ctx, tx); err != nil || entry == 0 || len(ids) == 0 {
			return err
		}
		return l.note(ctx, tx, entry, int64(len(ids)), ids)
	})
	return ids, more, err
}

// open begins an entry, if there is a log; zero if there is none.
func (l *auditLog) open(ctx context.Context, operation Operation, change Change, request any, result *Result) (entry int64, err error) {
	exists, err := l.exists(ctx)
	if err != nil {
		return 0, err
	}
	if !exists {
		result.Unaudited = unaudited
		return 0, nil
	}
	result.Audit, err = l.begin(ctx, operation, change.Actor, request)
	return result.Audit, err
}

// close ends an entry by what the work ended with, which it returns.
func (l *auditLog) close(ctx context.Context, entry int64, result *Result, err error) error {
	outcome := "done"
	switch {
	case err != nil:
		outcome = "failed: " + err.Error()
	case result.Interrupted:
		outcome = "interrupted"
	}
	if entry == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return errors.Join(err, l.end(ctx, entry, outcome))
}

// defaultBatch is how many events one transaction changes.
const defaultBatch = 1000

// begin checks what is asked for, and fills in what was left out. The time is the database's.
func begin(ctx context.Context, pool *pgxpool.Pool, filter *Filter, d *Description, operation Operation, change *Change) error {
	if err := d.Check(operation); err != nil {
		return err
	}
	if err := filter.check(d); err != nil {
		return err
	}
	switch {
	case change.BatchSize == 0:
		change.BatchSize = defaultBatch
	case change.BatchSize < 1 || change.BatchSize > maxBatch:
		return fmt.Errorf("outbox: a batch of %d events; choose 1 to %d: %w", change.BatchSize, maxBatch, ErrFilter)
	}
	if change.Before.IsZero() {
		if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&change.Before); err != nil {
			return fmt.Errorf("outbox: ask for the time: %w", err)
		}
		change.Before = change.Before.UTC()
	}
	return nil
}

// maxBatch is the most that one transaction changes.
const maxBatch = 10_000

// auditRequest is what the audit log says was asked for.
type auditRequest struct {
	Filter Filter    `json:"filter"`
	Before time.Time `json:"before,omitzero"`
	Rate   int       `json:"rate,omitempty"`
}

// purgeRequest is the same of a purge.
type purgeRequest struct {
	Retention           string `json:"retention"`
	DeadLetterRetention string `json:"deadLetterRetention,omitempty"`
}

// purge deletes what is old. A store deletes in steps of its own; the log is written after
// each of them, so that it may be one step behind after a crash.
func (l *auditLog) purge(ctx context.Context, store outbox.Store, purge outbox.Purge, change Change) (*Result, error) {
	purge.DryRun = change.DryRun
	if change.BatchSize > 0 {
		purge.BatchSize = change.BatchSize
	}
	result := &Result{DryRun: change.DryRun}
	var entry int64
	var err error
	if !change.DryRun {
		request := purgeRequest{Retention: purge.Retention.String()}
		if purge.DeadLetterRetention > 0 {
			request.DeadLetterRetention = purge.DeadLetterRetention.String()
		}
		if entry, err = l.open(ctx, OperationPurge, change, request, result); err != nil {
			return nil, err
		}
	}
	var noteErr error
	purge.Progress = func(deleted int64) {
		if noteErr == nil {
			noteErr = l.noteAlone(ctx, entry, deleted-result.Events, nil)
		}
		result.Events = deleted
		if change.Progress != nil {
			change.Progress(deleted)
		}
	}
	_, err = store.Purge(ctx, purge)
	if ctx.Err() != nil && err != nil {
		result.Interrupted, err = true, nil
	}
	return result, l.close(ctx, entry, result, errors.Join(err, noteErr))
}
