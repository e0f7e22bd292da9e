package stream

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/internal/view"
)

// parkedBase is what an index has of a state, on a row p.
func parkedBase(state view.State) string {
	if state == view.StateDead || state == view.StateHeld {
		return "p.state = '" + string(state) + "'"
	}
	return "true"
}

// lookedSQL are the newest parked events of every shard, and the place above which nothing is missing
// of them. $1 subscription, $2 the seq to begin before, $3 how many of a shard.
const lookedSQL = `
WITH looked AS MATERIALIZED (
  SELECT p.id, p.namespace, p.topic, p.type, p.key, p.aggregate_type, p.aggregate_id, p.tenant_id, p.not_before, p.max_attempts,
    p.created_at, p.shard, p.seq, p.state, p.attempts, p.next_attempt_at, p.last_error, p.reason, p.replayed
  FROM {shards} AS c CROSS JOIN LATERAL (
    SELECT p.* FROM {parked} AS p
    WHERE p.subscription = $1 AND p.shard = c.shard AND %s AND p.seq < $2
    ORDER BY p.seq DESC LIMIT $3
  ) AS p
  WHERE c.subscription = $1
), cut AS (
  SELECT coalesce(max(seq), 0) AS seq FROM (SELECT min(seq) AS seq FROM looked GROUP BY shard HAVING count(*) >= $3) AS cut
)`

// listParked goes back along the parked events of every shard.
func (s *Subscription) listParked(ctx context.Context, tx pgx.Tx, f *view.Filter, after *view.Position, size int) (*view.Listing, error) {
	high, err := from(after, walkParked)
	if err != nil {
		return nil, err
	}
	perShard := size + 1
	if narrowed := *f; !narrowed.Empty() || parkedBase(f.State) == "true" {
		perShard = max(query.ScanLimit/8, perShard)
	}
	args := query.Args{s.name, high, perShard}
	looked := fmt.Sprintf(lookedSQL, parkedBase(f.State))
	rows, err := tx.Query(ctx, streamsql.Names(s.stream.Schema, fmt.Sprintf(`%s SELECT %s FROM looked AS p WHERE p.seq >= (SELECT seq FROM cut) AND %s ORDER BY p.seq DESC LIMIT %d`,
		looked, eventList("p", parkedState, false), query.And(conditions(f, "p", parkedState, &args)), size+1)), args.All()...)
	if err != nil {
		return nil, err
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (found, error) { return scanFound(row, false) })
	if err != nil {
		return nil, err
	}
	listing := &view.Listing{Events: []view.Event{}}
	for i := range events[:min(len(events), size)] {
		listing.Events = append(listing.Events, events[i].Event)
	}
	switch {
	case len(events) > size:
		listing.Next = view.Position{Walk: walkParked, Seq: events[size-1].seq}.String()
	default:
		var cut int64
		var created pgtype.Timestamptz
		sql := looked + ` SELECT cut.seq, (SELECT max(p.created_at) FROM looked AS p WHERE p.seq = cut.seq), (SELECT count(*) FROM looked) FROM cut`
		if err := tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, sql), args[:3].All()...).Scan(&cut, &created, &listing.Searched); err != nil {
			return nil, err
		}
		if cut == 0 {
			listing.Searched = 0
			break
		}
		listing.Next, listing.Unindexed, listing.SearchedTo = view.Position{Walk: walkParked, Seq: cut}.String(), true, query.Moment(created)
	}
	return listing, nil
}
