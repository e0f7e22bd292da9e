package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// byAge is the order of events that an index found by their fields: all of them are sorted.
const byAge = "found"

// List finds events.
func (t *Table) List(ctx context.Context, f *view.Filter, after *view.Position, size int) (listing *view.Listing, err error) {
	err = query.ByIndex(ctx, t.pool, func(tx pgx.Tx) (err error) {
		listing, err = t.list(ctx, tx, f, after, size)
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && strings.HasPrefix(pgErr.Code, "22") { // data exception: the column cannot have the value
		return nil, fmt.Errorf("outbox: %w: %s", view.ErrFilter, pgErr.Message)
	}
	return listing, err
}

func (t *Table) list(ctx context.Context, tx pgx.Tx, f *view.Filter, after *view.Position, size int) (*view.Listing, error) {
	if after == nil || after.Walk == byAge {
		found, err := t.find(ctx, tx, f, after, size)
		if err != nil || found != nil {
			return found, err
		}
	}
	w, err := t.choose(ctx, tx, f, after)
	if err != nil {
		return nil, err
	}
	// Read one more than the page, to know whether there is another.
	s, err := t.look(ctx, tx, w, request{filter: f, from: after, want: size + 1, limit: query.ScanLimit})
	if err != nil {
		return nil, err
	}
	listing := &view.Listing{Events: s.events}
	if w.unordered {
		listing.Note = "the ids of this table do not tell the time, and no index has it: events are listed in the order of their ids"
	}
	switch {
	case len(s.events) > size:
		listing.Events = s.events[:size]
		listing.Next = s.places[size-1].String()
	case s.last != nil:
		listing.Next, listing.Unindexed, listing.SearchedTo, listing.Searched = s.last.String(), true, s.lastCreated.UTC(), s.looked
	}
	return listing, nil
}

// find answers a filter by an index on its fields, unless there are too many events to sort: a walk finds those
// soon.
func (t *Table) find(ctx context.Context, tx pgx.Tx, f *view.Filter, after *view.Position, size int) (*view.Listing, error) {
	var args query.Args
	equal, err := t.equal(ctx, tx, f, &args)
	if err != nil || equal == "" || len(f.IDs) > 0 {
		return nil, err
	}
	some := fmt.Sprintf("SELECT t.* FROM %s AS t WHERE %s LIMIT %d", t.layout.Events(), equal, query.ScanLimit+1)
	p, err := sqlplan.Explain(ctx, tx, some, args.All()...)
	if err != nil || !p.Finds() {
		return nil, err
	}
	var n int
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM ("+some+") AS t", args.All()...).Scan(&n); err != nil || n > query.ScanLimit {
		return nil, err
	}
	c := &t.layout.Columns
	keyset := ""
	if after != nil {
		keyset = fmt.Sprintf("(%s, %s) < (%s::timestamptz, %s::uuid)", col(c.CreatedAt), col(c.ID), args.Add(after.At), args.Add([16]byte(after.ID)))
	}
	sql := fmt.Sprintf("SELECT %s FROM (%s) AS t WHERE %s ORDER BY %s DESC, %s DESC LIMIT %d",
		t.eventList("''", false), some, query.And(t.rest(f, &args), keyset), col(c.CreatedAt), col(c.ID), size+1)
	rows, _ := tx.Query(ctx, sql, args.All()...) // the rows say what failed
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (view.Event, error) { return t.scanEvent(row, false) })
	if err != nil {
		return nil, err
	}
	listing := &view.Listing{Events: events}
	if len(events) > size {
		listing.Events = events[:size]
		last := &events[size-1]
		listing.Next = view.Position{Walk: byAge, At: last.CreatedAt, ID: last.ID}.String()
	}
	return listing, nil
}
