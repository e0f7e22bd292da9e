package ops

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/pgstream"
)

// maxListedIDs is how many ids a list looks for one by one.
const maxListedIDs = 100

// List finds events of the subscription: those that are parked in the table they are in, all
// others along the log.
func (s *subscription) List(ctx context.Context, filter Filter, page Page) (*Listing, error) {
	size, err := page.size()
	if err != nil {
		return nil, err
	}
	if err := filter.check(&s.description); err != nil {
		return nil, err
	}
	after, err := parsePosition(page.Cursor)
	if err != nil {
		return nil, err
	}
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	// Before the transaction: a pool may have a single connection.
	is, err := s.stream.FindSubscription(ctx, s.pool, s.name)
	if err != nil {
		return nil, err
	}
	var listing *Listing
	err = byIndex(ctx, s.pool, func(tx pgx.Tx) (err error) {
		switch {
		case len(filter.IDs) > 0:
			listing, err = s.listIDs(ctx, tx, &filter)
		case filter.Error != "", filter.State != "" && filter.State != StateDue && filter.State != StateDelivered:
			listing, err = s.listParked(ctx, tx, &filter, after, size)
		default:
			listing, err = s.listLog(ctx, tx, is, &filter, after, size)
		}
		return err
	})
	return listing, s.wrap("list the events", err)
}

// listIDs looks for each event by itself.
func (s *subscription) listIDs(ctx context.Context, tx pgx.Tx, f *Filter) (*Listing, error) {
	if len(f.IDs) > maxListedIDs {
		return nil, fmt.Errorf("%d ids at once; name %d at most: %w", len(f.IDs), maxListedIDs, ErrFilter)
	}
	listing := &Listing{Events: []Event{}}
	for _, id := range f.IDs {
		event, err := s.search(ctx, tx, id, false)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if f.matches(&event.Event) {
			listing.Events = append(listing.Events, event.Event)
		}
	}
	return listing, nil
}

// walkLog and walkParked are the two lists of a stream.
const (
	walkLog    = "log"
	walkParked = "parked"
)

// from is the seq before which a page begins.
func from(after *position, walk string) (int64, error) {
	if after == nil {
		return math.MaxInt64, nil
	}
	if after.Walk != walk {
		return 0, fmt.Errorf("%w: %w", ErrFilter, errCursor)
	}
	return after.Seq, nil
}

// listLog goes back along the log, in windows of seqs that grow until the page is full or as
// many events were looked at as a search may.
func (s *subscription) listLog(
	ctx context.Context, tx pgx.Tx, is *pgstream.Subscription, f *Filter, after *position, size int,
) (*Listing, error) {
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
	listing := &Listing{Events: []Event{}}
	for window, looked := int64(4*size), int64(0); ; window *= 4 {
		// From the next event on: what was rolled back, and slots that were emptied, leave gaps.
		next, created, err := s.before(ctx, tx, f, high)
		if err != nil || next < low || next == 0 {
			return listing, err
		}
		if looked >= scanLimit {
			listing.Next, listing.Unindexed = position{Walk: walkLog, Seq: high}.String(), true
			listing.SearchedTo, listing.Searched = moment(created), int(looked)
			return listing, nil
		}
		window = min(window, scanLimit-looked)
		bottom := max(next+1-window, low)
		events, err := s.logBetween(ctx, tx, is, f, bottom, next+1, size+1-len(listing.Events))
		if err != nil {
			return nil, err
		}
		for i := range events {
			if len(listing.Events) == size {
				listing.Next = position{Walk: walkLog, Seq: events[i].seq + 1}.String()
				return listing, nil
			}
			listing.Events = append(listing.Events, events[i].Event)
		}
		looked += next + 1 - bottom
		high = bottom
	}
}

// beforeSQL is the last event before a place. $1 subscription, $2 seq.
const beforeSQL = `
SELECT coalesce(max(e.seq), 0), max(e.created_at)
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT e.seq, e.created_at FROM {stream} AS e WHERE e.shard = c.shard AND e.seq < $2 ORDER BY e.seq DESC LIMIT 1
) AS e
WHERE c.subscription = $1`

func (s *subscription) before(ctx context.Context, tx pgx.Tx, f *Filter, seq int64) (last int64, created pgtype.Timestamptz, err error) {
	args := arguments{s.name, seq}
	err = tx.QueryRow(ctx, s.stream.SQL(beforeSQL+" AND "+s.shardOf(f, &args)), args.all()...).Scan(&last, &created)
	return last, created, err
}

// shardOf narrows the shards to that of a key.
func (s *subscription) shardOf(f *Filter, args *arguments) string {
	if f.Key == "" {
		return "true"
	}
	return "c.shard = (SELECT hashtextextended(" + args.add(f.Key) + "::text, 0) & (o.shards - 1) FROM {settings} AS o)"
}

// logBetween are the events of a part of the log, newest first.
func (s *subscription) logBetween(
	ctx context.Context, tx pgx.Tx, is *pgstream.Subscription, f *Filter, low, high int64, limit int,
) ([]found, error) {
	args := arguments{s.name, low, high}
	theirs := mine(is, &args)
	where := both("c.subscription = $1", s.shardOf(f, &args), conditions(f, "e", logState, &args))
	rows, err := tx.Query(ctx, s.stream.SQL(fmt.Sprintf(`SELECT %s
FROM {shards} AS c JOIN {stream} AS e ON e.shard = c.shard AND e.seq >= $2 AND e.seq < $3
LEFT JOIN {parked} AS p ON p.subscription = c.subscription AND p.shard = e.shard AND p.seq = e.seq AND NOT p.replayed
WHERE %s%s
ORDER BY e.seq DESC LIMIT %d`, eventList("e", logState, false), where, theirs, limit)), args.all()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (found, error) { return scanFound(row, false) })
}

// parkedBase is what an index has of a state, on a row p.
func parkedBase(state State) string {
	if state == StateDead || state == StateHeld {
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
func (s *subscription) listParked(ctx context.Context, tx pgx.Tx, f *Filter, after *position, size int) (*Listing, error) {
	high, err := from(after, walkParked)
	if err != nil {
		return nil, err
	}
	perShard := size + 1
	if narrowed := *f; !narrowed.Empty() || parkedBase(f.State) == "true" {
		perShard = max(scanLimit/8, perShard)
	}
	args := arguments{s.name, high, perShard}
	looked := fmt.Sprintf(lookedSQL, parkedBase(f.State))
	rows, err := tx.Query(ctx, s.stream.SQL(fmt.Sprintf(`%s SELECT %s FROM looked AS p WHERE p.seq >= (SELECT seq FROM cut) AND %s ORDER BY p.seq DESC LIMIT %d`,
		looked, eventList("p", parkedState, false), both(conditions(f, "p", parkedState, &args)), size+1)), args.all()...)
	if err != nil {
		return nil, err
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (found, error) { return scanFound(row, false) })
	if err != nil {
		return nil, err
	}
	listing := &Listing{Events: []Event{}}
	for i := range events[:min(len(events), size)] {
		listing.Events = append(listing.Events, events[i].Event)
	}
	switch {
	case len(events) > size:
		listing.Next = position{Walk: walkParked, Seq: events[size-1].seq}.String()
	default:
		var cut int64
		var created pgtype.Timestamptz
		sql := looked + ` SELECT cut.seq, (SELECT max(p.created_at) FROM looked AS p WHERE p.seq = cut.seq), (SELECT count(*) FROM looked) FROM cut`
		if err := tx.QueryRow(ctx, s.stream.SQL(sql), args[:3].all()...).Scan(&cut, &created, &listing.Searched); err != nil {
			return nil, err
		}
		if cut == 0 {
			listing.Searched = 0
			break
		}
		listing.Next, listing.Unindexed, listing.SearchedTo = position{Walk: walkParked, Seq: cut}.String(), true, moment(created)
	}
	return listing, nil
}
