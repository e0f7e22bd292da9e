package pgstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rotation says which slots to empty besides the one whose turn comes next.
type rotation struct {
	// retention also empties slots whose last event is older; zero for none.
	retention time.Duration
	// dryRun counts only.
	dryRun bool
	// emptied is told how many events a slot held; nil counts nothing.
	emptied func(events int64)
}

// lockTimeout is how long a rotation waits for a slot that somebody reads, such as pg_dump.
// Whoever wants to read the slot waits that long behind it; emits go to another slot.
const lockTimeout = 100 * time.Millisecond

// slotsSQL lists the slots that are not written now, and how long ago each was: its last
// period is the latest that began before the current one.
const slotsSQL = `
SELECT s.slot, s.slot = (t.turn + 1) % o.slots,
  extract(epoch FROM now())::float8 - (t.turn - (t.turn - s.slot + o.slots) % o.slots + 1)::float8 * o.slot_seconds
FROM {settings} AS o
CROSS JOIN LATERAL (SELECT floor(extract(epoch FROM now()) / o.slot_seconds)::bigint AS turn) AS t
CROSS JOIN LATERAL generate_series(0, o.slots - 1) AS s(slot)
WHERE s.slot <> t.turn % o.slots
ORDER BY 3 DESC`

// lockSlotSQL waits for whoever has written to a slot and not ended: the check that follows
// sees what they commit.
const lockSlotSQL = `LOCK TABLE ONLY {slot} IN ACCESS EXCLUSIVE MODE`

// unreadSQL finds the subscriptions that have not settled every event of a slot. Nothing but
// visibility says so: not the highest seq, nor the time, which is that of a transaction's
// start. It runs after the lock is held, in a snapshot of its own. What s1 does not see is
// from its xmax on, or listed: asked so, the index finds it, however long a transaction of
// the server has been open.
const unreadSQL = `
SELECT DISTINCT c.subscription FROM {shards} AS c
WHERE EXISTS (SELECT FROM {slot} AS e WHERE e.xid >= pg_snapshot_xmax(c.s1) AND e.shard = c.shard)
  OR EXISTS (SELECT FROM pg_snapshot_xip(c.s1) AS x JOIN {slot} AS e ON e.xid = x WHERE e.shard = c.shard)
ORDER BY 1`

// rotate empties slots. A slot with an event that some subscription has not settled stays as
// it is for another turn: nothing is lost, and the log says who lags.
func (s *Store) rotate(ctx context.Context, r rotation) error {
	// On a restored database the cursors say nothing.
	if err := s.stream.check(ctx, s.pool); err != nil {
		return err
	}
	rows, err := s.pool.Query(ctx, s.stream.names(slotsSQL))
	if err != nil {
		return fmt.Errorf("outbox: read the ring: %w", err)
	}
	type slot struct {
		number int
		next   bool
		age    float64
	}
	slots, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (sl slot, err error) {
		return sl, row.Scan(&sl.number, &sl.next, &sl.age)
	})
	if err != nil {
		return fmt.Errorf("outbox: read the ring: %w", err)
	}
	for _, sl := range slots {
		if !sl.next && (r.retention == 0 || sl.age < r.retention.Seconds()) {
			continue
		}
		behind, err := s.empty(ctx, sl.number, r)
		if err != nil {
			return fmt.Errorf("outbox: empty slot %d: %w", sl.number, err)
		}
		if sl.next && len(behind) > 0 {
			s.log.Warn("subscriptions lag behind the ring; nothing is lost, but the slot keeps its events for another turn",
				"slot", sl.number, "subscriptions", behind)
		}
	}
	return nil
}

// empty truncates one slot, unless somebody still needs it or uses it.
func (s *Store) empty(ctx context.Context, number int, r rotation) (behind []string, err error) {
	table := s.stream.slot(number)
	of := func(sql string) string { return strings.ReplaceAll(sql, "{slot}", table) }
	var filled bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+`)`).Scan(&filled); err != nil || !filled {
		return nil, err
	}
	var events int64
	if r.emptied != nil {
		if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&events); err != nil {
			return nil, err
		}
	}
	// In a session that checks by the index: the slot is locked meanwhile.
	err = pgx.BeginTxFunc(ctx, s.own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if !r.dryRun {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = '%dms'`, lockTimeout.Milliseconds())); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, of(s.sql.lockSlot)); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, of(s.sql.unread))
		if err != nil {
			return err
		}
		if behind, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(behind) > 0 || r.dryRun {
			return err
		}
		_, err = tx.Exec(ctx, `TRUNCATE `+table)
		return err
	})
	if isLocked(err) {
		return nil, nil // somebody uses it; there will be another time
	}
	if err == nil && len(behind) == 0 && r.emptied != nil {
		r.emptied(events)
	}
	return behind, err
}

func isLocked(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03" // lock_not_available
}
