package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// Show reads an event, its dead letters and what people did to it.
func (t *Table) Show(ctx context.Context, id uuid.UUID, people []view.Moment) (*view.Details, error) {
	sql := fmt.Sprintf("SELECT %s, %s FROM %s AS t WHERE %s = $1",
		t.eventList("''", true), orElse(t.layout.Columns.UpdatedAt, "%s", "NULL::timestamptz"), t.layout.Events(), col(t.layout.Columns.ID))
	rows, _ := t.pool.Query(ctx, sql, query.Unprepared, [16]byte(id)) // the rows say what failed
	var updated pgtype.Timestamptz
	event, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (view.Event, error) { return t.scanEvent(row, true, &updated) })
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("outbox: %s in %s: %w", id, t.layout.Table, view.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	details := &view.Details{Event: event}
	letters, err := t.letters(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the dead letters: %w", err)
	}
	details.Timeline = t.timeline(details, query.Moment(updated), letters, people)
	return details, nil
}

type letter struct {
	failedAt, retriedAt time.Time
	reason, lastError   string
}

func (t *Table) letters(ctx context.Context, id uuid.UUID) ([]letter, error) {
	if t.layout.DeadLetter == nil {
		return nil, nil
	}
	c := &t.layout.DeadLetter.Columns
	rows, _ := t.pool.Query(ctx, fmt.Sprintf("SELECT %[2]s, %[3]s, %[4]s::text, %[5]s FROM %[1]s AS t WHERE %[6]s = $1 ORDER BY %[2]s",
		t.layout.Letters(), col(c.FailedAt), orElse(c.RetriedAt, "%s", "NULL::timestamptz"), col(c.Reason),
		orElse(c.LastError, "coalesce(%s::text, '')", "''"), col(c.EventID)), [16]byte(id)) // the rows say what failed
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l letter, err error) {
		var failed, retried pgtype.Timestamptz
		err = row.Scan(&failed, &retried, &l.reason, &l.lastError)
		l.failedAt, l.retriedAt = query.Moment(failed), query.Moment(retried)
		return l, err
	})
}

// timeline lists what happened to an event. What people did is in the audit log, or else in its dead letters.
func (t *Table) timeline(d *view.Details, updated time.Time, letters []letter, people []view.Moment) []view.Moment {
	list := append([]view.Moment{{At: d.CreatedAt, What: "emitted"}}, people...)
	for _, l := range letters {
		list = append(list, view.Moment{At: l.failedAt, What: "dead", Detail: reasonText(l.reason, l.lastError)})
		if !l.retriedAt.IsZero() && !slices.ContainsFunc(people, func(m view.Moment) bool { return m.What == "retried" }) {
			list = append(list, view.Moment{At: l.retriedAt, What: "retried"})
		} else if l.retriedAt.IsZero() {
			d.Reason = l.reason
		}
	}
	switch {
	case d.State == view.StateDelivered && !d.DeliveredAt.IsZero():
		list = append(list, view.Moment{At: d.DeliveredAt, What: "delivered"})
	case d.State == view.StateDelivered && !updated.IsZero():
		list = append(list, view.Moment{At: updated, What: "delivered", Detail: "or changed since"})
	case d.State == view.StateDead && len(letters) == 0 && !updated.IsZero():
		list = append(list, view.Moment{At: updated, What: "dead", Detail: d.LastError})
	case d.State == view.StateRetrying && !updated.IsZero():
		list = append(list, view.Moment{At: updated, What: "failed", Detail: d.LastError})
	}
	return list
}

func reasonText(reason, lastError string) string {
	if lastError == "" {
		return reason
	}
	return reason + ": " + lastError
}
