package pginbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/consume/inbox"
)

// purgeStep is how many rows one statement of a purge deletes: few, so that no lock is held for long.
const purgeStep = 1000

// purgeSQL deletes up to $3 marks older than $1 seconds, the oldest first. It continues where the last step ended,
// $2: a scan from the start would pass over everything deleted and not yet vacuumed, in every step.
const purgeSQL = `WITH gone AS (
  DELETE FROM %[1]s AS t WHERE t.ctid = ANY(ARRAY(
    SELECT t.ctid FROM %[1]s AS t
    WHERE t.processed_at >= $2::timestamptz AND t.processed_at < now() - make_interval(secs => $1::float8)
    ORDER BY t.processed_at LIMIT $3::int FOR UPDATE OF t SKIP LOCKED))
  RETURNING t.processed_at
)
SELECT count(*), coalesce(max(processed_at), $2::timestamptz) FROM gone`

// Querier runs single statements: a *pgxpool.Pool or a *pgx.Conn.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Purge deletes marks older than olderThan by the database's clock, in small steps, and returns how many. It
// refuses a time shorter than Config.Horizon: an event without its mark would be handled again. Purges may run at
// the same time.
func (i *Inbox) Purge(ctx context.Context, db Querier, olderThan time.Duration) (int64, error) {
	return i.purgeAll(olderThan, func(n *int64, from *time.Time) error {
		return db.QueryRow(ctx, i.purge, olderThan.Seconds(), *from, purgeStep).Scan(n, from)
	})
}

// PurgeSQL is Purge with database/sql.
func (i *Inbox) PurgeSQL(ctx context.Context, db *sql.DB, olderThan time.Duration) (int64, error) {
	return i.purgeAll(olderThan, func(n *int64, from *time.Time) error {
		return db.QueryRowContext(ctx, i.purge, olderThan.Seconds(), *from, purgeStep).Scan(n, from)
	})
}

func (i *Inbox) purgeAll(olderThan time.Duration, step func(n *int64, from *time.Time) error) (total int64, err error) {
	if olderThan <= 0 {
		return 0, fmt.Errorf("inbox: a purge of what is older than %s; choose a time above zero", olderThan)
	}
	if err := inbox.CheckHorizon(olderThan, i.config.Horizon); err != nil {
		return 0, err
	}
	from := time.Unix(0, 0).UTC() // before any mark
	for {
		var n int64
		if err := step(&n, &from); err != nil {
			return total, fmt.Errorf("inbox: purge %s: %w", i.config.table(), err)
		}
		total += n
		if n < purgeStep {
			return total, nil
		}
	}
}
