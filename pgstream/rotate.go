package pgstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// rotation says which slots to empty besides the one whose turn comes next.
type rotation struct {
	// retention also empties slots whose last event is older; zero for none.
	retention time.Duration
	// dryRun only counts.
	dryRun bool
	// emptied is called with the number of events that a slot held. If it is nil they are not counted: counting reads the
	// whole slot, which TRUNCATE does not.
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

// rotate empties slots. A slot with an event that some subscription has not settled stays as it is for another turn:
// nothing is lost, and the log says who lags. If one slot cannot be emptied, the others are emptied all the same.
func (s *Store) rotate(ctx context.Context, r rotation) error {
	// On a restored database the cursors say nothing.
	if err := s.stream.check(ctx, s.pool, ""); err != nil {
		return err
	}
	rows, _ := s.pool.Query(ctx, s.stream.names(slotsSQL))
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
	var errs []error
	for _, sl := range slots {
		if !sl.next && (r.retention == 0 || sl.age < r.retention.Seconds()) {
			continue
		}
		behind, err := s.empty(ctx, sl.number, r)
		if err != nil {
			errs = append(errs, fmt.Errorf("outbox: empty slot %d: %w", sl.number, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if sl.next && len(behind) > 0 {
			s.log.Warn("subscriptions lag behind the ring; nothing is lost, but the slot keeps its events for another turn",
				"slot", sl.number, "subscriptions", behind)
		}
	}
	return errors.Join(errs...)
}

// empty truncates one slot, unless somebody still needs it or uses it.
func (s *Store) empty(ctx context.Context, number int, r rotation) (behind []string, err error) {
	table := streamsql.Slot(s.stream.Schema, number)
	var filled bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+`)`).Scan(&filled); err != nil || !filled {
		return nil, err
	}
	var events int64
	if r.emptied != nil {
		// A slot that stays is not counted.
		if behind, err = s.behind(ctx, s.own, table); err != nil || len(behind) > 0 {
			return behind, err
		}
		if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&events); err != nil {
			return nil, err
		}
	}
	if r.dryRun {
		r.emptied(events)
		return nil, nil
	}
	// In a session that checks by the index: the slot is locked meanwhile.
	err = pgx.BeginTxFunc(ctx, s.own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = '%dms'`, lockTimeout.Milliseconds())); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, strings.ReplaceAll(s.sql.lockSlot, "{slot}", table)); err != nil {
			return err
		}
		if behind, err = s.behind(ctx, tx, table); err != nil || len(behind) > 0 {
			return err
		}
		// The database refuses everybody else.
		if _, err := tx.Exec(ctx, `SET LOCAL outbox.rotation = 'on'`); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `TRUNCATE `+table)
		return err
	})
	if sqlstate.Of(err) == sqlstate.LockNotAvailable {
		return nil, nil // somebody uses it; there will be another time
	}
	if err != nil || len(behind) > 0 {
		return behind, err
	}
	s.log.Info("a slot of the ring was emptied", "slot", number)
	if r.emptied != nil {
		r.emptied(events)
	}
	return nil, nil
}

// behind are the subscriptions that have not settled every event of a slot. It runs while the slot is locked, in a snapshot of
// its own.
func (s *Store) behind(ctx context.Context, db Querier, table string) ([]string, error) {
	rows, _ := db.Query(ctx, strings.ReplaceAll(s.sql.unread, "{slot}", table))
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
