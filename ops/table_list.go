package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/internal/sqlname"
)

// byAge is the order of what an index found by itself: all of it is sorted.
const byAge = "found"

// List finds events of the table.
func (t *table) List(ctx context.Context, filter Filter, page Page) (*Listing, error) {
	size, err := page.size()
	if err != nil {
		return nil, err
	}
	if err := filter.check(&t.description); err != nil {
		return nil, err
	}
	after, err := parsePosition(page.Cursor)
	if err != nil {
		return nil, err
	}
	var listing *Listing
	err = byIndex(ctx, t.pool, func(tx pgx.Tx) (err error) {
		listing, err = t.list(ctx, tx, &filter, after, size)
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && strings.HasPrefix(pgErr.Code, "22") { // data exception: a value that the column cannot have
		return nil, fmt.Errorf("outbox: %w: %s", ErrFilter, pgErr.Message)
	}
	return listing, t.wrap("list the events", err)
}

func (t *table) list(ctx context.Context, tx pgx.Tx, f *Filter, after *position, size int) (*Listing, error) {
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
	// One more than the page, to know whether there is another.
	s, err := t.look(ctx, tx, w, request{filter: f, from: after, want: size + 1, limit: scanLimit})
	if err != nil {
		return nil, err
	}
	listing := &Listing{Events: s.events}
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

// find answers a filter by an index that leads to what it asks for, unless that is too much to
// sort: then the events are so many that a walk meets them soon.
func (t *table) find(ctx context.Context, tx pgx.Tx, f *Filter, after *position, size int) (*Listing, error) {
	var args arguments
	equal, err := t.equal(f, &args)
	if err != nil || equal == "" || len(f.IDs) > 0 {
		return nil, err
	}
	some := fmt.Sprintf("SELECT t.* FROM %s AS t WHERE %s LIMIT %d", t.is.Table, equal, scanLimit+1)
	p, err := explain(ctx, tx, some, args)
	if err != nil || !p.finds() {
		return nil, err
	}
	var n int
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM ("+some+") AS t", args.all()...).Scan(&n); err != nil || n > scanLimit {
		return nil, err
	}
	c := &t.layout.Columns
	keyset := ""
	if after != nil {
		keyset = fmt.Sprintf("(%s, %s) < (%s::timestamptz, %s::uuid)", col(c.CreatedAt), col(c.ID), args.add(after.At), args.add([16]byte(after.ID)))
	}
	sql := fmt.Sprintf("SELECT %s FROM (%s) AS t WHERE %s ORDER BY %s DESC, %s DESC LIMIT %d",
		t.eventList("''", false), some, both(t.rest(f, &args), keyset), col(c.CreatedAt), col(c.ID), size+1)
	rows, err := tx.Query(ctx, sql, args.all()...)
	if err != nil {
		return nil, err
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Event, error) { return t.scanEvent(row, false) })
	if err != nil {
		return nil, err
	}
	listing := &Listing{Events: events}
	if len(events) > size {
		listing.Events = events[:size]
		last := &events[size-1]
		listing.Next = position{Walk: byAge, At: last.CreatedAt, ID: last.ID}.String()
	}
	return listing, nil
}

// Show is all that the table knows of an event.
func (t *table) Show(ctx context.Context, id uuid.UUID) (*Details, error) {
	sql := fmt.Sprintf("SELECT %s, %s FROM %s AS t WHERE %s = $1",
		t.eventList("''", true), orElse(t.layout.Columns.UpdatedAt, "%s", "NULL::timestamptz"), t.is.Table, col(t.layout.Columns.ID))
	rows, err := t.pool.Query(ctx, sql, onTheFly, [16]byte(id))
	if err != nil {
		return nil, t.wrap("read an event", err)
	}
	var updated pgtype.Timestamptz
	event, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Event, error) { return t.scanEvent(row, true, &updated) })
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("outbox: %s in %s: %w", id, t.layout.Table, ErrNotFound)
	}
	if err != nil {
		return nil, t.wrap("read an event", err)
	}
	details := &Details{Event: event}
	letters, err := t.letters(ctx, id)
	if err != nil {
		return nil, t.wrap("read the dead letters", err)
	}
	people, err := t.log.moments(ctx, id)
	if err != nil {
		return nil, err
	}
	details.Timeline = t.timeline(details, moment(updated), letters, people)
	return details, nil
}

// letter is a dead letter of an event.
type letter struct {
	failedAt, retriedAt time.Time
	reason, lastError   string
}

func (t *table) letters(ctx context.Context, id uuid.UUID) ([]letter, error) {
	if t.layout.DeadLetter == nil {
		return nil, nil
	}
	c := &t.layout.DeadLetter.Columns
	lastError := "''"
	if !c.LastError.IsZero() {
		lastError = "coalesce(d." + sqlname.Quote(c.LastError.Name) + "::text, '')"
	}
	retried := "NULL::timestamptz"
	if !c.RetriedAt.IsZero() {
		retried = "d." + sqlname.Quote(c.RetriedAt.Name)
	}
	rows, err := t.pool.Query(ctx, fmt.Sprintf("SELECT d.%[2]s, %[3]s, d.%[4]s::text, %[5]s FROM %[1]s AS d WHERE d.%[6]s = $1 ORDER BY d.%[2]s",
		t.is.Letters, sqlname.Quote(c.FailedAt.Name), retried, sqlname.Quote(c.Reason.Name), lastError,
		sqlname.Quote(c.EventID.Name)), [16]byte(id))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l letter, err error) {
		var failed, retried pgtype.Timestamptz
		err = row.Scan(&failed, &retried, &l.reason, &l.lastError)
		l.failedAt, l.retriedAt = moment(failed), moment(retried)
		return l, err
	})
}

// timeline puts together what happened to an event. What people did is in the audit log, or
// else in its dead letters.
func (t *table) timeline(d *Details, updated time.Time, letters []letter, people []Moment) []Moment {
	list := append([]Moment{{At: d.CreatedAt, What: "emitted"}}, people...)
	for _, l := range letters {
		list = append(list, Moment{At: l.failedAt, What: "dead", Detail: reasonText(l.reason, l.lastError)})
		if !l.retriedAt.IsZero() && !slices.ContainsFunc(people, func(m Moment) bool { return m.What == "retried" }) {
			list = append(list, Moment{At: l.retriedAt, What: "retried"})
		} else if l.retriedAt.IsZero() {
			d.Reason = l.reason
		}
	}
	switch {
	case d.State == StateDelivered && !d.DeliveredAt.IsZero():
		list = append(list, Moment{At: d.DeliveredAt, What: "delivered"})
	case d.State == StateDelivered && !updated.IsZero():
		list = append(list, Moment{At: updated, What: "delivered", Detail: "or changed since"})
	case d.State == StateDead && len(letters) == 0 && !updated.IsZero():
		list = append(list, Moment{At: updated, What: "dead", Detail: d.LastError})
	case d.State == StateRetrying && !updated.IsZero():
		list = append(list, Moment{At: updated, What: "failed", Detail: d.LastError})
	}
	return inOrder(list)
}

func reasonText(reason, lastError string) string {
	if lastError == "" {
		return reason
	}
	return reason + ": " + lastError
}
