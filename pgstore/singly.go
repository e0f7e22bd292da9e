package pgstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlstate"
)

// isRefusal reports whether the server would not write a row because of what is in it: a constraint, a trigger that raises, a
// value that does not fit. All others of the batch were to be written in the same transaction.
func isRefusal(err error) bool {
	code := sqlstate.Of(err)
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "22", "23", "27", "2F", "38", "39", "44", "P0": // data, constraints, triggers and functions
		return true
	}
	return false
}

// settleSingly settles a batch row by row, after the server refused to settle it as a whole: one row that cannot be settled must
// not have the others published again. It returns the rows that are left, with the error of the first.
func (b *batch) settleSingly(ctx context.Context, outcomes []outbox.Outcome) (left []uuid.UUID, err error) {
	if b.tx != nil {
		b.tx.rollBack(ctx) // it has failed, and still has the locks
	}
	var first error
	for i := range outcomes {
		if outcomes[i].Kind == outbox.Released && b.tx != nil {
			continue // its lock is gone, and that was all
		}
		lost, err := b.settleOne(ctx, outcomes, i)
		switch {
		case isRefusal(err):
			left = append(left, b.messages[i].ID)
			if first == nil {
				first = err
			}
		case err != nil:
			return nil, err
		case lost && b.tx == nil:
			left = append(left, b.messages[i].ID)
		}
	}
	if first == nil {
		return left, nil // what was in the way has gone
	}
	return left, fmt.Errorf("%w: outbox: %d of %d events cannot be settled, event %s among them; the others are: %w",
		outbox.ErrLeaseLost, len(left), len(outcomes), left[0], first)
}

// settleOne settles one row in a transaction of its own. The locks of a batch that was only locked went with its transaction: such
// a row is locked again first, and left to whoever has it meanwhile.
func (b *batch) settleOne(ctx context.Context, outcomes []outbox.Outcome, i int) (lost bool, err error) {
	one := b.single(i)
	if b.tx == nil {
		ids, err := one.write(ctx, outcomes[i:i+1], false)
		return len(ids) > 0, err
	}
	if one.tx, err = b.store.openSession(ctx); err != nil {
		return false, fmt.Errorf("outbox: settle in %s: %w", b.store.layout.Table, err)
	}
	defer one.Abandon()
	ours, err := one.tx.lock(ctx, b.store.sql.lockAgain, b.messages[i].ID)
	if err != nil {
		return false, fmt.Errorf("outbox: settle in %s: %w", b.store.layout.Table, err)
	}
	if !ours {
		return true, nil
	}
	kept, err := one.write(ctx, outcomes[i:i+1], true)
	if err == nil {
		err = one.swallowed(kept)
	}
	return false, err
}

// single is a batch of one of the messages. If the rows are only locked, the caller sets its transaction.
func (b *batch) single(i int) *batch {
	return &batch{store: b.store, messages: b.messages[i : i+1], holds: b.holds[i : i+1]}
}

// lock locks the row of an event, in a transaction that begins with it, unless somebody else has it or it is settled.
func (s *session) lock(ctx context.Context, statement *statement, id uuid.UUID) (ours bool, err error) {
	for _, sql := range s.begin {
		if err := s.exec(ctx, sql); err != nil {
			return false, err
		}
	}
	s.begin = nil
	rows, err := s.Query(ctx, statement.sql, statement.fresh([16]byte(id))...)
	if err != nil {
		return false, err
	}
	ids, err := pgx.CollectRows(rows, toID)
	return len(ids) > 0, err
}

// lockAgain locks a pending row, $1.
func (c *compiler) lockAgain() *statement {
	if !c.l.Locks() {
		return nil
	}
	c.begin(1)
	return c.end(fmt.Sprintf("SELECT %[1]s FROM %[2]s AS t WHERE %[1]s = $1::uuid AND %[3]s AND %[4]s FOR UPDATE OF t SKIP LOCKED",
		t(c.l.Columns.ID), c.l.Events(), c.l.Pending(t), c.claimable()))
}

// bury moves rows with used-up attempts to dead: all at once or, if the server refuses one, one by one. Those that cannot be are
// returned with an error about the first.
func (b *batch) bury(ctx context.Context, outcomes []outbox.Outcome) (lost, stuck []uuid.UUID, why, err error) {
	attempt := func(part *batch, outcomes []outbox.Outcome) ([]uuid.UUID, error) {
		if b.tx == nil {
			return part.write(ctx, outcomes, false)
		}
		if err := b.tx.exec(ctx, "SAVEPOINT outbox_bury"); err != nil {
			return nil, err
		}
		kept, err := part.write(ctx, outcomes, false)
		if err == nil {
			err = part.swallowed(kept)
		} else if isRefusal(err) {
			if back := b.tx.exec(ctx, "ROLLBACK TO SAVEPOINT outbox_bury"); back != nil {
				return nil, back
			}
		}
		return kept, err
	}
	lost, err = attempt(b, outcomes)
	if !isRefusal(err) {
		if len(lost) > 0 && err != nil { // they were swallowed
			return nil, lost, err, nil
		}
		return lost, nil, nil, err
	}
	lost = nil
	for i := range outcomes {
		one := b.single(i)
		one.tx = b.tx
		gone, err := attempt(one, outcomes[i:i+1])
		switch {
		case err == nil:
			lost = append(lost, gone...)
		case isRefusal(err) || len(gone) > 0:
			stuck = append(stuck, b.messages[i].ID)
			if why == nil {
				why = err
			}
		default:
			return nil, nil, nil, err
		}
	}
	return lost, stuck, why, nil
}

// Stuck are events whose attempts are used up and that cannot be moved to dead, with the reason of the first; see outbox.StuckBatch.
func (b *batch) Stuck() ([]uuid.UUID, error) { return b.stuck, b.stuckBy }
