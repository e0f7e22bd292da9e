package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
)

// batch is what one claim took. While its rows are only locked it has a transaction of its own.
type batch struct {
	store *Store
	tx    *session // nil if the rows are marked

	messages  []outbox.Message
	exhausted []outbox.Message
	reclaimed int
	stuck     []uuid.UUID
	stuckBy   error

	mu sync.Mutex // guards what renewing changes
	// holds are the rows by message; a row lost to somebody else has an older mark.
	holds []hold
}

// hold names a row and proves that it is ours.
type hold struct {
	tid  pgtype.TID
	mark pgtype.Timestamptz
}

func (b *batch) Messages() []outbox.Message  { return b.messages }
func (b *batch) Exhausted() []outbox.Message { return b.exhausted }
func (b *batch) Reclaimed() int              { return b.reclaimed }

// fill takes the rows of a claim and moves those with used-up attempts to dead.
func (b *batch) fill(ctx context.Context, rows []claimed) error {
	b.messages = make([]outbox.Message, 0, len(rows))
	b.holds = make([]hold, 0, len(rows))
	spent := &batch{store: b.store, tx: b.tx}
	for i := range rows {
		target := b
		if rows[i].exhausted {
			target = spent
		}
		target.messages = append(target.messages, rows[i].Message)
		target.holds = append(target.holds, hold{rows[i].tid, rows[i].mark})
	}
	if len(spent.messages) == 0 || b.store.layout.ClaimEnds() {
		b.exhausted = spent.messages
		return nil
	}
	died := outbox.Outcome{Kind: outbox.Died, Reason: outbox.ReasonMaxAttempts, Uncounted: true}
	lost, stuck, why, err := spent.bury(ctx, slices.Repeat([]outbox.Outcome{died}, len(spent.messages)))
	if err != nil {
		return fmt.Errorf("outbox: move events with used-up attempts to dead: %w", err)
	}
	b.stuck, b.stuckBy = stuck, why
	b.exhausted = slices.DeleteFunc(spent.messages, func(m outbox.Message) bool {
		return slices.Contains(lost, m.ID) || slices.Contains(stuck, m.ID)
	})
	return nil
}

// Settle writes the outcomes in one round trip. Rows that have moved since the claim take a second one.
func (b *batch) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []uuid.UUID, err error) {
	if len(outcomes) != len(b.messages) {
		return nil, fmt.Errorf("outbox: %d outcomes for %d messages", len(outcomes), len(b.messages))
	}
	if b.tx != nil {
		lost, err = b.settleLocked(ctx, outcomes)
	} else if lost, err = b.write(ctx, outcomes, false); err != nil {
		b.store.pool.Distrust(err)
	}
	if isRefusal(err) && len(lost) == 0 && len(b.messages) > 1 {
		return b.settleSingly(ctx, outcomes)
	}
	return lost, err
}

// write writes outcomes. With end it ends the batch's transaction, too, in the same round trip.
func (b *batch) write(ctx context.Context, outcomes []outbox.Outcome, end bool) (lost []uuid.UUID, err error) {
	b.mu.Lock()
	holds := b.holds
	b.mu.Unlock()
	all := make([]int, len(outcomes))
	for i := range all {
		all[i] = i
	}
	locked := b.tx != nil
	sql := &b.store.sql.byCtid
	if locked {
		sql = &b.store.sql.locked
	}
	missed, err := b.send(ctx, sql, outcomes, holds, all, end)
	if err != nil || len(missed) == 0 {
		return nil, err
	}
	if !locked {
		if missed, err = b.send(ctx, &b.store.sql.byID, outcomes, holds, missed, false); err != nil {
			return nil, err
		}
	}
	for _, i := range missed {
		lost = append(lost, b.messages[i].ID)
	}
	return lost, nil
}

// send writes the outcomes at some places, one statement for each kind and mark, in one
// round trip and one transaction, and returns the places whose rows were not ours.
func (b *batch) send(
	ctx context.Context, sql *settles, outcomes []outbox.Outcome, holds []hold, places []int, end bool,
) (missed []int, err error) {
	groups := groupOutcomes(b.messages, outcomes, holds, places)
	if b.tx != nil {
		groups = slices.DeleteFunc(groups, func(g *outcomeGroup) bool { return g.kind == outbox.Released })
	}
	switch {
	case len(groups) == 0 && !end:
		return nil, nil
	case b.tx != nil && b.tx.over():
		return nil, errSessionOver
	}
	queue := &pgx.Batch{}
	for _, group := range groups {
		statement, args := group.statement(sql)
		queue.Queue(statement.sql, statement.with(args...)...)
	}
	var db querier = b.store.pool
	if b.tx != nil {
		db = b.tx
	}
	if end {
		queue.Queue(commitSQL)
	}
	results := db.SendBatch(ctx, queue)
	defer func() {
		if closeErr := results.Close(); err == nil && closeErr != nil {
			missed, err = nil, fmt.Errorf("outbox: settle in %s: %w", b.store.layout.Table, closeErr)
		}
	}()
	for _, group := range groups {
		found, err := collectIDs(results)
		if err != nil {
			return nil, fmt.Errorf("outbox: settle in %s: %w", b.store.layout.Table, err)
		}
		for i, id := range group.ids {
			if _, ok := found[id]; !ok {
				missed = append(missed, group.places[i])
			}
		}
	}
	if end {
		tag, err := results.Exec()
		if err := b.tx.committed(tag, errors.Join(err, results.Close())); err != nil {
			return nil, fmt.Errorf("outbox: commit a settle in %s: %w", b.store.layout.Table, err)
		}
	}
	return missed, nil
}

func collectIDs(results pgx.BatchResults) (map[[16]byte]struct{}, error) {
	rows, _ := results.Query()
	found := make(map[[16]byte]struct{})
	var id [16]byte
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		found[id] = struct{}{}
		return nil
	})
	return found, err
}

// Renew keeps the batch for another lease.
func (b *batch) Renew(ctx context.Context) error {
	if b.tx != nil {
		return b.renewLocked(ctx)
	}
	kept, err := b.mark(ctx, b.store.pool, b.store.sql.renew)
	if err == nil && kept == 0 {
		err = outbox.ErrLeaseLost
	}
	return err
}

// mark writes a new mark to the rows that are still ours, and returns how many they are.
func (b *batch) mark(ctx context.Context, db querier, statement *statement) (kept int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for mark, places := range byMark(b.holds) {
		ids := make([][16]byte, len(places))
		where := make(map[[16]byte]int, len(places))
		for i, place := range places {
			ids[i] = b.messages[place].ID
			where[ids[i]] = place
		}
		rows, err := db.Query(ctx, statement.sql, statement.fresh(mark, ids)...)
		if err != nil {
			return kept, fmt.Errorf("outbox: renew the lease: %w", err)
		}
		var id [16]byte
		var renewed hold
		_, err = pgx.ForEachRow(rows, []any{&id, &renewed.tid, &renewed.mark}, func() error {
			b.holds[where[id]] = renewed
			kept++
			return nil
		})
		if err != nil {
			return kept, fmt.Errorf("outbox: renew the lease: %w", err)
		}
	}
	return kept, nil
}

// byMark groups rows by the claim or renewal that marked them.
func byMark(holds []hold) map[pgtype.Timestamptz][]int {
	groups := make(map[pgtype.Timestamptz][]int, 1)
	for i, h := range holds {
		groups[h.mark] = append(groups[h.mark], i)
	}
	return groups
}

// Abandon ends the transaction of a batch that is only locked, if it is still open. The rows
// are free as soon as the server notices, at the latest when the connection closes.
func (b *batch) Abandon() {
	if b.tx == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.store.config.Lease)
	defer cancel()
	b.tx.rollBack(ctx)
}

// isConnectionLost reports whether an error means that the session is gone.
func isConnectionLost(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		// 25P03 idle_in_transaction_session_timeout, 57P01 admin_shutdown, 57P02 crash_shutdown.
		return pgErr.Code == "25P03" || pgErr.Code == "57P01" || pgErr.Code == "57P02"
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// Singles splits the batch into one per message, for modkit, which settles them one by one. A batch that is only locked is
// one transaction and cannot be split.
func (b *batch) Singles() []outbox.Batch {
	if b.tx != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]outbox.Batch, len(b.messages))
	for i := range b.messages {
		list[i] = b.single(i)
	}
	return list
}
