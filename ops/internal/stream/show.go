package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// Show reads an event and its history.
func (s *Subscription) Show(ctx context.Context, id uuid.UUID, people []view.Moment) (details *view.Details, err error) {
	err = query.ByIndex(ctx, s.pool, func(tx pgx.Tx) error {
		event, err := s.search(ctx, tx, id, true)
		if err != nil {
			return err
		}
		details = &view.Details{Event: event.Event}
		details.Timeline, err = s.history(ctx, tx, event)
		return err
	})
	if errors.Is(err, view.ErrNotFound) {
		return nil, fmt.Errorf("outbox: %s in subscription %q: %w", id, s.name, err)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range details.Timeline {
		if details.State == view.StateDelivered && m.What == "delivered" && m.At.After(details.DeliveredAt) {
			details.DeliveredAt = m.At
		}
	}
	details.Timeline = append(details.Timeline, people...)
	return details, nil
}

// historySQL reads the settled pages that an event was in. The pages of an event that was never sent alone end near
// it. $1 subscription, $2 shard, $3 seq.
const historySQL = `
SELECT d.part, d.settled_at, d.worker::text
FROM (SELECT * FROM {deliveries} WHERE subscription = $1 AND shard = $2 AND to_seq >= $3 ORDER BY to_seq LIMIT 1000) AS d
WHERE d.from_seq <= $3 AND (d.part = 'parked' OR EXISTS (
  SELECT FROM {stream} AS e WHERE e.shard = $2 AND e.seq = $3
    AND pg_visible_in_snapshot(e.xid, d.s2) AND NOT pg_visible_in_snapshot(e.xid, d.s1)))
ORDER BY d.settled_at`

// history returns what the stream recorded of an event's past.
func (s *Subscription) history(ctx context.Context, tx pgx.Tx, event *found) ([]view.Moment, error) {
	list := []view.Moment{{At: event.CreatedAt, What: "emitted"}}
	rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, historySQL), query.Unprepared, s.name, event.shard, event.seq) // the rows say what failed
	var part, worker string
	var at time.Time
	var pages []int
	alone := false
	_, err := pgx.ForEachRow(rows, []any{&part, &at, &worker}, func() error {
		m := view.Moment{At: at.UTC(), What: "delivered", Detail: "by relay " + worker}
		if part != "parked" {
			pages = append(pages, len(list))
		} else {
			alone = true
		}
		list = append(list, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, i := range pages {
		switch {
		case event.parkedAt.Valid:
			list[i].What = "parked"
		case alone: // it may have been parked, and delivered or replayed since
			list[i].What = "read"
		}
	}
	if event.parkedAt.Valid {
		what := map[view.State]string{view.StateDead: "dead", view.StateHeld: "held", view.StateWaiting: "waits behind an earlier event of its key"}[event.State]
		if what == "" && event.Attempts > 0 {
			what = "failed"
		}
		if what != "" {
			list = append(list, view.Moment{At: event.changed.Time.UTC(), What: what, Detail: event.LastError})
		}
	}
	return list, nil
}
