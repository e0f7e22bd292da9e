package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// claimLocked opens a transaction that lasts until the batch is settled or, if rows can be marked, first renewed: only
// its row locks keep others away. The server ends it if this process stops, so nothing stays locked for ever.
func (s *Store) claimLocked(ctx context.Context, request *outbox.ClaimRequest) (*batch, error) {
	worth, err := s.worthClaiming(ctx)
	if err != nil {
		return nil, err
	}
	if !worth {
		return &batch{store: s}, nil
	}
	tx, err := s.openSession(ctx)
	if err != nil {
		return nil, fmt.Errorf("outbox: begin a claim: %w", err)
	}
	b := &batch{store: s, tx: tx}
	rows, err := s.claimDue(ctx, tx, request, request.Limit)
	if err == nil {
		rows, err = s.dropDead(ctx, tx, rows)
	}
	if err == nil {
		err = b.fill(ctx, rows)
	}
	if err != nil {
		b.Abandon()
		return nil, err
	}
	s.mu.Lock()
	s.idle = len(rows) == 0
	s.mu.Unlock()
	if len(b.messages) == 0 && len(b.exhausted) > 0 {
		// Nothing to publish, so that nobody will settle: the dead letters are kept now.
		if err := tx.commit(ctx); err != nil {
			b.Abandon()
			return nil, fmt.Errorf("outbox: move events with used-up attempts to dead: %w", err)
		}
	}
	return b, nil
}

// dropDead leaves out the rows that another relay moved to dead between this claim's snapshot and its locks. Now that
// they are locked, their letters cannot change.
func (s *Store) dropDead(ctx context.Context, tx *session, rows []claimed) ([]claimed, error) {
	if s.sql.dead == nil || len(rows) == 0 {
		return rows, nil
	}
	ids := make([][16]byte, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	letters, err := tx.Query(ctx, s.sql.dead.sql, s.sql.dead.fresh(ids)...)
	if err != nil {
		return nil, fmt.Errorf("outbox: look for dead letters of %s: %w", s.layout.Table, err)
	}
	dead, err := pgx.CollectRows(letters, toID)
	if err != nil {
		return nil, fmt.Errorf("outbox: look for dead letters of %s: %w", s.layout.Table, err)
	}
	return slices.DeleteFunc(rows, func(row claimed) bool { return slices.Contains(dead, row.ID) }), nil
}

// worthClaiming looks for events after a claim that found none: an idle poll is one statement, and no transaction.
func (s *Store) worthClaiming(ctx context.Context) (bool, error) {
	s.mu.Lock()
	// If a look at the whole table is slow, because of dead events at its head, the claim begins at its watermark.
	look := s.idle && s.fullTook <= s.slowScan
	s.mu.Unlock()
	if !look {
		return true, nil
	}
	var due bool
	err := s.pool.QueryRow(ctx, s.sql.peek.sql, s.sql.peek.fresh()...).Scan(&due)
	if err != nil {
		return false, fmt.Errorf("outbox: look for events in %s: %w", s.layout.Table, err)
	}
	return due, nil
}

// settleLocked writes the outcomes and commits. No row can be lost: all are locked. Rows that the database did not write
// all the same are returned with an error; the others are settled. After an error without rows the transaction is gone, and
// everything is as before the claim.
func (b *batch) settleLocked(ctx context.Context, outcomes []outbox.Outcome) (kept []uuid.UUID, err error) {
	kept, err = b.write(ctx, outcomes, true)
	if err == nil {
		err = b.swallowed(kept)
	}
	if err != nil {
		return kept, fmt.Errorf("%w: %w", outbox.ErrLeaseLost, err)
	}
	return nil, nil
}

// swallowed is the error about rows that the database did not change, although this batch has locked them.
func (b *batch) swallowed(ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	l := &b.store.layout
	tables := l.Table
	if l.DeadLetter != nil {
		tables += " or " + l.DeadLetter.Table
	}
	return fmt.Errorf("outbox: settle in %s: %d of the rows, that of event %s among them, stayed as they were, and the database says no error: a trigger or a rule of %s swallows what is written; remove it",
		l.Table, len(ids), ids[0], tables)
}

// renewLocked marks the rows, if they have a column for it, and ends the transaction: a long one keeps vacuum from its
// work. Otherwise it runs an empty statement: the server sees that this process is alive, and this process sees whether
// the transaction still is.
func (b *batch) renewLocked(ctx context.Context) (err error) {
	push := b.store.sql.push
	if push == nil {
		err = b.tx.exec(ctx, "SELECT")
	} else {
		_, err = b.mark(ctx, b.tx, push)
	}
	if err != nil {
		if ctx.Err() == nil && isConnectionLost(err) {
			return fmt.Errorf("%w: %w", outbox.ErrLeaseLost, err)
		}
		return fmt.Errorf("outbox: keep a claim: %w", err)
	}
	if push == nil {
		return nil
	}
	if err := b.tx.commit(ctx); err != nil {
		return fmt.Errorf("%w: outbox: commit a mark in %s: %w", outbox.ErrLeaseLost, b.store.layout.Table, err)
	}
	b.tx = nil
	return nil
}
