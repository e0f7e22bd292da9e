package ops

import (
	"context"
	"errors"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops/audit"
)

// purgeRequest is a purge as the audit log records it.
type purgeRequest struct {
	Retention           string `json:"retention"`
	DeadLetterRetention string `json:"deadLetterRetention,omitempty"`
}

// Purge deletes delivered events older than their retention, and dead ones older than theirs. It works in steps and
// writes the audit log after each, so after a crash the log may lack the last step.
func (o *Outbox) Purge(ctx context.Context, purge outbox.Purge, change Change) (*Result, error) {
	store, done, err := o.backend.Purger(ctx, purge, change.Logger)
	if err != nil {
		return nil, err
	}
	defer done()
	result := &Result{DryRun: change.DryRun}
	var record *audit.Record
	if !change.DryRun {
		request := purgeRequest{Retention: purge.Retention.String()}
		if purge.DeadLetterRetention > 0 {
			request.DeadLetterRetention = purge.DeadLetterRetention.String()
		}
		if record, err = o.begin(ctx, OperationPurge, change.Actor, request, result); err != nil {
			return nil, err
		}
	}
	var noteErr error
	purge.DryRun = change.DryRun
	if change.BatchSize > 0 {
		purge.BatchSize = change.BatchSize
	}
	purge.Progress = func(deleted int64) {
		if noteErr == nil {
			noteErr = record.Note(ctx, nil, deleted-result.Events, nil)
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
	return result, o.end(ctx, OperationPurge, record, result, errors.Join(err, noteErr))
}
