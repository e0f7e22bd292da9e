package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// walk is an order in which an index reads the rows of a table, from any position on. Its base is the condition of
// the index. The rest of a filter is checked row by row, on a bounded number of rows.
type walk struct {
	name string
	base string
	// at is the column that orders the rows, before their ids; zero for ids alone.
	at layouts.Column
	// letters is set if it follows the dead letters.
	letters bool
	// unordered is set if its order is not that of time.
	unordered bool
}

// byID reports whether the walk follows the ids alone.
func (w *walk) byID() bool { return !w.letters && w.at.IsZero() }

func (w *walk) order(at, id string, ascending bool) string {
	direction := " DESC"
	if ascending {
		direction = ""
	}
	if w.byID() {
		return id + direction
	}
	return at + direction + ", " + id + direction
}

func (t *Table) place(w *walk) (at, id string) {
	if w.letters {
		letter := &t.layout.DeadLetter.Columns
		return "d." + sqlname.Quote(letter.FailedAt.Name), "d." + sqlname.Quote(letter.ID.Name)
	}
	if w.at.IsZero() {
		return "NULL::timestamptz", col(t.layout.Columns.ID)
	}
	return col(w.at), col(t.layout.Columns.ID)
}

// candidates returns the walks for a state, best first. The last one is always possible.
func (t *Table) candidates(f *view.Filter) []walk {
	c := &t.layout.Columns
	var list []walk
	add := func(name, base string, at layouts.Column) {
		if !at.IsZero() {
			list = append(list, walk{name: name, base: base, at: at})
		}
	}
	switch f.State {
	case view.StateDue, view.StateScheduled, view.StateRetrying, view.StateClaimed:
		if f.State == view.StateClaimed && t.layout.Hold == layouts.HoldLease {
			add("leased", t.layout.Leased(col), c.LockedUntil)
			add("leased-due", t.layout.Leased(col), c.NextAttemptAt)
			break
		}
		add("pending", t.layout.Pending(col), t.layout.Order())
	case view.StateDead:
		if t.layout.DeadLetter != nil {
			list = append(list, walk{name: "letters", base: t.layout.OpenLetter(), letters: true})
			break
		}
		add("dead", t.layout.Dead(), c.CreatedAt)
		if c.NextAttemptAt.NotNull {
			add("dead-due", t.layout.Dead(), c.NextAttemptAt)
		}
	case view.StateDelivered:
		if t.layout.Done == layouts.DoneTimestamp {
			add("delivered", t.layout.Delivered(), c.DeliveredAt)
		}
		add("delivered-created", t.layout.Delivered(), c.CreatedAt)
		if c.NextAttemptAt.NotNull {
			add("delivered-due", t.layout.Delivered(), c.NextAttemptAt)
		}
	case "", view.StateWaiting, view.StateHeld:
		add("all", "", c.CreatedAt)
	}
	return append(list, walk{name: "ids"})
}

// choose returns the first walk that an index serves, or the one that a list began with.
func (t *Table) choose(ctx context.Context, tx pgx.Tx, f *view.Filter, after *view.Position) (*walk, error) {
	candidates := t.candidates(f)
	if len(f.IDs) > 0 {
		return &walk{name: "ids"}, nil // looked up one by one
	}
	ordered, err := t.idsInOrder(ctx, tx)
	if err != nil {
		return nil, err
	}
	last := &candidates[len(candidates)-1]
	last.unordered = !ordered
	// For a range of times, ids that begin with the time are better than an index on a state.
	if after == nil && ordered && (!f.Since.IsZero() || !f.Until.IsZero()) && (f.State == view.StateDelivered || f.State == "") {
		return last, nil
	}
	for i := range candidates {
		w := &candidates[i]
		if after != nil {
			if after.Walk == w.name {
				return w, nil
			}
			continue
		}
		// Open dead letters are few, so they are sorted: an index on them would tempt the planner to read all of
		// them for every row of a claim.
		if w == last || w.letters {
			return w, nil
		}
		var args query.Args
		p, err := sqlplan.Explain(ctx, tx, t.rows(w, "", false, nil, query.ScanLimit, &args), args.All()...)
		if err != nil {
			return nil, err
		}
		if p.Walks() {
			return w, nil
		}
	}
	return nil, fmt.Errorf("outbox: %w", view.ErrCursor)
}

// idsInOrder reports whether the table's ids are in the order of time: whether the highest one begins with the time
// at which its event was emitted. Any other kind of id would be higher, except by a chance that halves with every
// event.
func (t *Table) idsInOrder(ctx context.Context, tx pgx.Tx) (bool, error) {
	var id uuid.UUID
	var created time.Time
	sql := fmt.Sprintf("SELECT %[1]s, %[2]s FROM %[3]s AS t ORDER BY %[1]s DESC LIMIT 1",
		col(t.layout.Columns.ID), col(t.layout.Columns.CreatedAt), t.layout.Events())
	err := tx.QueryRow(ctx, sql).Scan((*[16]byte)(&id), &created)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	at, tells := query.IDTime(id)
	return tells && at.Sub(created).Abs() < 24*time.Hour, err
}

// rows selects what one step of a walk reads: at most limit rows from a position on.
func (t *Table) rows(w *walk, more string, ascending bool, from *view.Position, limit int, args *query.Args) string {
	at, id := t.place(w)
	compare, keyset := "<", ""
	if ascending {
		compare = ">"
	}
	switch {
	case from == nil:
	case w.byID():
		keyset = fmt.Sprintf("%s %s %s::uuid", id, compare, args.Add([16]byte(from.ID)))
	default:
		keyset = fmt.Sprintf("(%s, %s) %s (%s::timestamptz, %s::uuid)", at, id, compare, args.Add(from.At), args.Add([16]byte(from.ID)))
	}
	tables, letter := t.layout.Events()+" AS t", "''::text AS outbox_reason, NULL::timestamptz AS outbox_failed_at"
	if w.letters {
		d := &t.layout.DeadLetter.Columns
		tables = fmt.Sprintf("%s AS d JOIN %s AS t ON %s = d.%s", t.layout.Letters(), t.layout.Events(), col(t.layout.Columns.ID), sqlname.Quote(d.EventID.Name))
		letter = fmt.Sprintf("d.%s::text AS outbox_reason, d.%s AS outbox_failed_at", sqlname.Quote(d.Reason.Name), sqlname.Quote(d.FailedAt.Name))
	}
	return fmt.Sprintf("SELECT t.*, %s AS outbox_at, %s AS outbox_id, %s\nFROM %s\nWHERE %s\nORDER BY %s\nLIMIT %d",
		at, id, letter, tables, query.And(w.base, more, keyset), w.order(at, id, ascending), limit)
}

// within limits a walk to a filter's ids and times, as far as its order allows.
func (t *Table) within(w *walk, f *view.Filter, args *query.Args) string {
	c := &t.layout.Columns
	if len(f.IDs) > 0 {
		return col(c.ID) + " = ANY(" + args.Add(pgsession.IDs(f.IDs)) + ")"
	}
	at, id := t.place(w)
	byID := w.byID() && !w.unordered
	created := !w.byID() && w.at.Name == c.CreatedAt.Name
	var list []string
	if !f.Since.IsZero() {
		switch {
		case byID:
			list = append(list, id+" >= "+args.Add([16]byte(firstID(f.Since.Add(-idEarlier)))))
		case created, w.letters, !w.byID() && w.at.Name == c.DeliveredAt.Name: // an event ends after it was emitted
			list = append(list, at+" >= "+args.Add(f.Since))
		}
	}
	if !f.Until.IsZero() {
		switch {
		case byID:
			list = append(list, id+" < "+args.Add([16]byte(firstID(f.Until.Add(idLater)))))
		case created:
			list = append(list, at+" < "+args.Add(f.Until))
		}
	}
	return query.And(list...)
}
