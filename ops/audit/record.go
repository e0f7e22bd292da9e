package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/pgsession"
)

// writeTimeout bounds a write that continues after its caller's context ends.
const writeTimeout = time.Minute

// Record is the entry of a running operation. A nil Record writes nothing, because there is no log.
type Record struct {
	log *Log
	id  int64
}

// ID returns the entry's number; zero if there is no log.
func (r *Record) ID() int64 {
	if r == nil {
		return 0
	}
	return r.id
}

// Note adds events to the entry, in the transaction that changes them. If tx is nil it uses its own transaction,
// which the end of ctx does not stop: the events are already changed.
func (r *Record) Note(ctx context.Context, tx pgx.Tx, events int64, ids []uuid.UUID) error {
	if r == nil {
		return nil
	}
	if tx == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		return pgx.BeginFunc(ctx, r.log.pool, func(tx pgx.Tx) error { return r.Note(ctx, tx, events, ids) })
	}
	if _, err := tx.Exec(ctx, r.log.sql(`UPDATE {audit} SET events = events + $2 WHERE id = $1`), r.id, events); err != nil {
		return writeError(err)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, r.log.sql(`INSERT INTO {events} (event_id, audit_id) SELECT unnest($2::uuid[]), $1 ON CONFLICT DO NOTHING`),
		r.id, pgsession.IDs(ids))
	return writeError(err)
}

// End writes how the operation ended: interrupted, with an error, or well. It returns that error, joined with its own.
func (r *Record) End(ctx context.Context, interrupted bool, err error) error {
	if r == nil {
		return err
	}
	outcome := "done"
	switch {
	case err != nil:
		outcome = "failed: " + err.Error()
	case interrupted:
		outcome = "interrupted"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	_, failed := r.log.pool.Exec(ctx, r.log.sql(`UPDATE {audit} SET ended_at = clock_timestamp(), outcome = $2 WHERE id = $1`), r.id, outcome)
	return errors.Join(err, writeError(failed))
}

func writeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbox: write the audit log: %w", err)
}
