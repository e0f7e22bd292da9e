package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// step is the result of one step of a walk.
type step struct {
	events []view.Event
	// places are the positions of the events.
	places []view.Position
	// last is the last position read; nil at the end of the walk.
	last *view.Position
	// lastCreated is when the event at last was emitted.
	lastCreated time.Time
	// looked is the number of rows read if they held too few events.
	looked int
}

// request says what a step looks for.
type request struct {
	filter    *view.Filter
	ascending bool
	from      *view.Position
	// want is how many events are enough; limit is how many rows to read for them.
	want, limit int
	// before leaves out rows that changed at or after it, unless it is zero.
	before time.Time
	// whole reads payloads and headers, too.
	whole bool
}

func (t *Table) look(ctx context.Context, tx pgx.Tx, w *walk, r request) (*step, error) {
	var args query.Args
	inner := t.rows(w, t.within(w, r.filter, &args), r.ascending, r.from, r.limit, &args)
	innerArgs := len(args)
	equal, err := t.equal(ctx, tx, r.filter, &args)
	if err != nil {
		return nil, err
	}
	rest := t.rest(r.filter, &args)
	changed := ""
	if at := t.changedAt(w); at != "" && !r.before.IsZero() {
		changed = at + " < " + args.Add(r.before)
	}
	order := w.order("t.outbox_at", "t.outbox_id", r.ascending)
	sql := fmt.Sprintf("SELECT %s, t.outbox_at, t.outbox_id\nFROM (\n%s\n) AS t\nWHERE %s\nORDER BY %s\nLIMIT %d",
		t.eventList("t.outbox_reason", r.whole), inner, query.And(equal, rest, changed), order, r.want)
	rows, _ := tx.Query(ctx, sql, args.All()...) // the rows say what failed
	s := &step{}
	s.events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (view.Event, error) {
		place := view.Position{Walk: w.name}
		var at pgtype.Timestamptz
		event, err := t.scanEvent(row, r.whole, &at, (*[16]byte)(&place.ID))
		place.At = query.Moment(at)
		s.places = append(s.places, place)
		return event, err
	})
	if err != nil {
		return nil, err
	}
	if len(s.events) == r.want {
		s.last = &s.places[len(s.places)-1]
		s.lastCreated = s.events[len(s.events)-1].CreatedAt
		return s, nil
	}
	return s, t.end(ctx, tx, w, inner, args[:innerArgs], r.limit, s)
}

// end finds the position at which a step with too few events ended.
func (t *Table) end(ctx context.Context, tx pgx.Tx, w *walk, inner string, args query.Args, limit int, s *step) error {
	sql := fmt.Sprintf("SELECT t.outbox_at, t.outbox_id, %s FROM (\n%s\n) AS t OFFSET %d", col(t.layout.Columns.CreatedAt), inner, limit-1)
	last := view.Position{Walk: w.name}
	var at pgtype.Timestamptz
	err := tx.QueryRow(ctx, sql, args.All()...).Scan(&at, (*[16]byte)(&last.ID), &s.lastCreated)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // it went to the end
	}
	last.At = query.Moment(at)
	s.last, s.looked = &last, limit
	return err
}
