package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
)

// sweepStep is how many rows one statement of a sweep moves.
const sweepStep = 1000

// Sweep moves events whose lease ran out on the last allowed attempt to dead. The claim
// does the same for those it meets; Sweep is for a table that nobody claims from.
func (s *Store) Sweep(ctx context.Context) (int64, error) {
	if s.sql.sweep == nil {
		return 0, nil
	}
	var total int64
	for {
		tag, err := s.pool.Exec(ctx, s.sql.sweep.sql, s.sql.sweep.fresh(sweepStep)...)
		if err != nil {
			return total, fmt.Errorf("outbox: sweep %s: %w", s.layout.Table, s.explain(err))
		}
		total += tag.RowsAffected()
		if tag.RowsAffected() < sweepStep {
			return total, nil
		}
	}
}

// Purge deletes delivered events and, if they have a retention, dead letters with their events, in small steps. It never
// deletes an event that may still be delivered. If one of the two fails, the other runs all the same.
func (s *Store) Purge(ctx context.Context, purge outbox.Purge) (int64, error) {
	purge, err := purge.WithDefaults()
	if err != nil {
		return 0, err
	}
	if purge.DeadLetterRetention > 0 && s.layout.DeadLetter == nil {
		return 0, fmt.Errorf("outbox: layout %s has no dead-letter table, so it has no dead letters to purge", s.layout.Name)
	}
	var total int64
	progress := func(n int64) {
		total += n
		if purge.Progress != nil {
			purge.Progress(total)
		}
	}
	err = s.purgeTable(ctx, s.sql.purge, s.sql.purgeCount, purge.Retention, purge, progress)
	if purge.DeadLetterRetention > 0 {
		err = errors.Join(err, s.purgeTable(ctx, s.sql.purgeLetters, s.sql.purgeLettersCount, purge.DeadLetterRetention, purge, progress))
	}
	return total, err
}

func (s *Store) purgeTable(
	ctx context.Context, step, count *statement, retention time.Duration, purge outbox.Purge, progress func(int64),
) error {
	if purge.DryRun {
		var n int64
		if err := s.pool.QueryRow(ctx, count.sql, count.with(retention.Seconds())...).Scan(&n); err != nil {
			return fmt.Errorf("outbox: count what a purge of %s would delete: %w", s.layout.Table, err)
		}
		progress(n)
		return nil
	}
	for {
		n, err := s.purgeStep(ctx, step, retention, purge.BatchSize)
		if err != nil {
			return fmt.Errorf("outbox: purge %s: %w", s.layout.Table, s.explain(err))
		}
		progress(n)
		if n < int64(purge.BatchSize) {
			return nil
		}
	}
}

// purgeStep deletes one step. The statement for dead letters deletes from two tables and
// returns its count; the other's is in its command tag.
func (s *Store) purgeStep(ctx context.Context, step *statement, retention time.Duration, size int) (n int64, err error) {
	args := step.fresh(retention.Seconds(), size)
	if step == s.sql.purgeLetters {
		err = s.pool.QueryRow(ctx, step.sql, args...).Scan(&n)
		return n, err
	}
	tag, err := s.pool.Exec(ctx, step.sql, args...)
	return tag.RowsAffected(), err
}

// Stats counts what is waiting, held and dead.
func (s *Store) Stats(ctx context.Context) (outbox.Stats, error) {
	var stats outbox.Stats
	var age float64
	row := s.pool.QueryRow(ctx, s.sql.stats.sql, s.sql.stats.fresh()...)
	err := row.Scan(&stats.Due, &stats.Scheduled, &stats.Retrying, &stats.Held, &stats.Dead, &stats.Exhausted, &age)
	if err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: count the events of %s: %w", s.layout.Table, s.explain(err))
	}
	stats.OldestAge = time.Duration(age * float64(time.Second))
	timeless, unknown, err := s.countStrays(ctx)
	if err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: count the rows of %s in no known state: %w", s.layout.Table, err)
	}
	if stats.Strays = timeless + unknown; unknown == outbox.NotCounted {
		stats.Strays = outbox.NotCounted
	}
	return stats, nil
}

// Retry makes dead events due now, with the same id and no attempts counted. It returns the ids of those that were dead.
func (s *Store) Retry(ctx context.Context, ids ...uuid.UUID) ([]uuid.UUID, error) {
	return s.RetryIn(ctx, s.pool, ids...)
}

// Querier is a transaction, a connection or a pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// RetryIn is Retry in the caller's transaction.
func (s *Store) RetryIn(ctx context.Context, db Querier, ids ...uuid.UUID) ([]uuid.UUID, error) {
	rows, _ := db.Query(ctx, s.sql.retry.sql, s.sql.retry.fresh(pgsession.IDs(ids))...)
	retried, err := pgx.CollectRows(rows, toID)
	if err != nil {
		return nil, fmt.Errorf("outbox: retry dead events: %w", s.explain(err))
	}
	return retried, nil
}
