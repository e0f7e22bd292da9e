package stream

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
	"github.com/packfinderz/outbox/pgstream"
)

// maxListedIDs bounds the ids that a list looks for one by one.
const maxListedIDs = 100

// List finds events: parked ones in their table, all others along the log.
func (s *Subscription) List(ctx context.Context, f *view.Filter, after *view.Position, size int) (listing *view.Listing, err error) {
	// Ask before the transaction: a pool may have a single connection.
	is, err := s.stream.FindSubscription(ctx, s.pool, s.name)
	if err != nil {
		return nil, err
	}
	err = query.ByIndex(ctx, s.pool, func(tx pgx.Tx) (err error) {
		switch {
		case len(f.IDs) > 0:
			listing, err = s.listIDs(ctx, tx, f)
		case f.Error != "", f.State != "" && f.State != view.StateDue && f.State != view.StateDelivered:
			listing, err = s.listParked(ctx, tx, f, after, size)
		default:
			listing, err = s.listLog(ctx, tx, is, f, after, size)
		}
		return err
	})
	return listing, err
}

func (s *Subscription) listIDs(ctx context.Context, tx pgx.Tx, f *view.Filter) (*view.Listing, error) {
	if len(f.IDs) > maxListedIDs {
		return nil, fmt.Errorf("outbox: %w: %d ids in one list; give at most %d", view.ErrFilter, len(f.IDs), maxListedIDs)
	}
	listing := &view.Listing{Events: []view.Event{}}
	for _, id := range f.IDs {
		event, err := s.search(ctx, tx, id, false)
		if errors.Is(err, view.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if matches(f, &event.Event) {
			listing.Events = append(listing.Events, event.Event)
		}
	}
	return listing, nil
}

// matches reports whether a filter selects an event, apart from its ids.
func matches(f *view.Filter, e *view.Event) bool {
	for _, c := range []struct{ want, is string }{
		{string(f.State), string(e.State)},
		{f.Namespace, e.Namespace},
		{f.Topic, e.Topic},
		{f.Type, e.Type},
		{f.AggregateType, e.AggregateType},
		{f.AggregateID, e.AggregateID},
		{f.Key, e.Key},
		{f.Error, query.Normal(e.LastError)},
	} {
		if c.want != "" && c.want != c.is {
			return false
		}
	}
	return (f.TenantID == uuid.Nil || f.TenantID == e.TenantID) &&
		(f.Since.IsZero() || !e.CreatedAt.Before(f.Since)) && (f.Until.IsZero() || e.CreatedAt.Before(f.Until))
}

// walkLog and walkParked are the two lists of a stream.
const (
	walkLog    = "log"
	walkParked = "parked"
)

func from(after *view.Position, walk string) (int64, error) {
	if after == nil {
		return math.MaxInt64, nil
	}
	if after.Walk != walk {
		return 0, fmt.Errorf("outbox: %w", view.ErrCursor)
	}
	return after.Seq, nil
}

// listLog reads the log backwards, in windows of seqs that grow until the page is full or the search reaches its
// limit.
func (s *Subscription) listLog(
	ctx context.Context, tx pgx.Tx, is *pgstream.Subscription, f *view.Filter, after *view.Position, size int,
) (*view.Listing, error) {
	high, err := from(after, walkLog)
	if err != nil {
		return nil, err
	}
	var low int64
	if !f.Since.IsZero() {
		if low, err = s.seqAt(ctx, tx, f.Since, false); err != nil {
			return nil, err
		}
	}
	if !f.Until.IsZero() && after == nil {
		if high, err = s.seqAt(ctx, tx, f.Until, true); err != nil {
			return nil, err
		}
	}
	listing := &view.Listing{Events: []view.Event{}}
	for window, looked := int64(4*size), int64(0); ; window *= 4 {
		// Continue at the next event: rolled-back transactions and emptied slots leave gaps.
		next, created, err := s.before(ctx, tx, f, high)
		if err != nil || next < low || next == 0 {
			return listing, err
		}
		if looked >= query.ScanLimit {
			listing.Next, listing.Unindexed = view.Position{Walk: walkLog, Seq: high}.String(), true
			listing.SearchedTo, listing.Searched = query.Moment(created), int(looked)
			return listing, nil
		}
		window = min(window, query.ScanLimit-looked)
		bottom := max(next+1-window, low)
		events, err := s.logBetween(ctx, tx, is, f, bottom, next+1, size+1-len(listing.Events))
		if err != nil {
			return nil, err
		}
		for i := range events {
			if len(listing.Events) == size {
				listing.Next = view.Position{Walk: walkLog, Seq: events[i].seq + 1}.String()
				return listing, nil
			}
			listing.Events = append(listing.Events, events[i].Event)
		}
		looked += next + 1 - bottom
		high = bottom
	}
}

// beforeSQL selects the last event before a place. $1 subscription, $2 seq.
const beforeSQL = `
SELECT coalesce(max(e.seq), 0), max(e.created_at)
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT e.seq, e.created_at FROM {stream} AS e WHERE e.shard = c.shard AND e.seq < $2 ORDER BY e.seq DESC LIMIT 1
) AS e
WHERE c.subscription = $1`

func (s *Subscription) before(ctx context.Context, tx pgx.Tx, f *view.Filter, seq int64) (last int64, created pgtype.Timestamptz, err error) {
	args := query.Args{s.name, seq}
	err = tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, beforeSQL+" AND "+s.shardOf(f, &args)), args.All()...).Scan(&last, &created)
	return last, created, err
}

// shardOf limits the shards to that of a key.
func (s *Subscription) shardOf(f *view.Filter, args *query.Args) string {
	if f.Key == "" {
		return "true"
	}
	return "c.shard = (SELECT hashtextextended(" + args.Add(f.Key) + "::text, 0) & (o.shards - 1) FROM {settings} AS o)"
}

func (s *Subscription) logBetween(
	ctx context.Context, tx pgx.Tx, is *pgstream.Subscription, f *view.Filter, low, high int64, limit int,
) ([]found, error) {
	args := query.Args{s.name, low, high}
	theirs := mine(is, &args)
	where := query.And("c.subscription = $1", s.shardOf(f, &args), conditions(f, "e", logState, &args))
	rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, fmt.Sprintf(`SELECT %s
FROM {shards} AS c JOIN {stream} AS e ON e.shard = c.shard AND e.seq >= $2 AND e.seq < $3
LEFT JOIN {parked} AS p ON p.subscription = c.subscription AND p.shard = e.shard AND p.seq = e.seq AND NOT p.replayed
WHERE %s%s
ORDER BY e.seq DESC LIMIT %d`, eventList("e", logState, false), where, theirs, limit)), args.All()...) // the rows say what failed
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (found, error) { return scanFound(row, false) })
}

// parkedBase returns the condition of the index that serves a state, on a row p.
func parkedBase(state view.State) string {
	if state == view.StateDead || state == view.StateHeld {
		return "p.state = '" + string(state) + "'"
	}
	return "true"
}

// lookedSQL reads the newest parked events of every shard; above the seq cut, none is missing. $1 subscription, $2
// the seq to begin before, $3 how many per shard.
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
	rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, fmt.Sprintf(`%s SELECT %s FROM looked AS p WHERE p.seq >= (SELECT seq FROM cut) AND %s ORDER BY p.seq DESC LIMIT %d`,
		looked, eventList("p", parkedState, false), conditions(f, "p", parkedState, &args), size+1)), args.All()...) // the rows say what failed
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
