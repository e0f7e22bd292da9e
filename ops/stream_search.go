package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The log has no index on ids, nor on times. But its events stand nearly in the order of
// time, so that a time is found by halving, and an id that tells its time with it.

// seqAtSQL is when the events from a place on were emitted: the first of each shard. $1 seq.
const seqAtSQL = `
SELECT min(e.created_at), max(e.created_at), min(e.seq)
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT e.created_at, e.seq FROM {stream} AS e WHERE e.shard = c.shard AND e.seq >= $2 ORDER BY e.seq LIMIT 1
) AS e
WHERE c.subscription = $1`

// seqAt is a place in the log before which (with late) or from which on there is next to nothing emitted
// at or after a time. A transaction that was open for long leaves its events, with the time of
// its beginning, among later ones: one such event does not lead astray.
func (s *subscription) seqAt(ctx context.Context, tx pgx.Tx, at time.Time, late bool) (int64, error) {
	var low, high int64
	if err := tx.QueryRow(ctx, s.stream.SQL(lastSeqSQL)).Scan(&high); err != nil {
		return 0, err
	}
	for low < high {
		middle := low + (high-low)/2
		var first, last *time.Time
		var seq *int64
		if err := tx.QueryRow(ctx, s.stream.SQL(seqAtSQL), onTheFly, s.name, middle).Scan(&first, &last, &seq); err != nil {
			return 0, err
		}
		switch {
		case seq == nil, !late && !last.Before(at), late && !first.Before(at):
			high = middle
		default:
			low = max(middle, *seq) + 1
		}
	}
	return low, nil
}

// seqOfSQL are the ids of the events from a place on: the first of each shard. $1 subscription,
// $2 seq.
const seqOfSQL = `
SELECT array_agg(e.id), coalesce(min(e.seq), 0)
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT e.id, e.seq FROM {stream} AS e WHERE e.shard = c.shard AND e.seq >= $2 ORDER BY e.seq LIMIT 1
) AS e
WHERE c.subscription = $1`

// seqOf is about where in the log an id that tells its time stands: ids rise along the log, but
// for those of callers, and for transactions that ran beside each other.
func (s *subscription) seqOf(ctx context.Context, tx pgx.Tx, id uuid.UUID) (int64, error) {
	var low, high int64
	if err := tx.QueryRow(ctx, s.stream.SQL(lastSeqSQL)).Scan(&high); err != nil {
		return 0, err
	}
	for low < high {
		middle := low + (high-low)/2
		var plain [][16]byte
		var seq int64
		if err := tx.QueryRow(ctx, s.stream.SQL(seqOfSQL), onTheFly, s.name, middle).Scan(&plain, &seq); err != nil {
			return 0, err
		}
		telling, later := 0, 0
		for _, other := range plain {
			if _, tells := idTime(other); tells {
				telling++
				if bytes.Compare(other[:], id[:]) >= 0 {
					later++
				}
			}
		}
		if 2*later >= telling { // with none that tells, as if at the end
			high = middle
		} else {
			low = max(middle, seq) + 1
		}
	}
	return low, nil
}

const (
	// lastSeqSQL is the end of the log.
	lastSeqSQL = `SELECT coalesce(pg_sequence_last_value({'stream_seq'}), 0) + 1`
	// nearby is how far around its place an event is looked for by its id.
	nearby = scanLimit / 2
	// searchAround is how far around its time, with no more than searchSeqs events.
	searchAround = 30 * time.Second
	searchSeqs   = 5 * scanLimit
)

// search finds an event by its id: among the parked ones, around the time that its id tells,
// or else among the newest.
func (s *subscription) search(ctx context.Context, tx pgx.Tx, id uuid.UUID, whole bool) (*found, error) {
	event, err := one(tx.Query(ctx, s.stream.SQL(`SELECT `+eventList("p", parkedState, whole)+`
FROM {parked} AS p WHERE p.id = $1 AND p.subscription = $2 ORDER BY p.replayed LIMIT 1`), onTheFly, [16]byte(id), s.name))(whole)
	if err != nil || event != nil && !event.Replayed {
		return event, err
	}
	windows, err := s.windows(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, window := range windows {
		logged, err := one(tx.Query(ctx, s.stream.SQL(`SELECT `+eventList("e", logState, whole)+`
FROM {shards} AS c JOIN {stream} AS e ON e.shard = c.shard AND e.seq >= $3 AND e.seq < $4
LEFT JOIN {parked} AS p ON p.subscription = c.subscription AND p.shard = e.shard AND p.seq = e.seq AND NOT p.replayed
WHERE c.subscription = $2 AND e.id = $1 LIMIT 1`), onTheFly, [16]byte(id), s.name, window[0], window[1]))(whole)
		if err != nil || logged != nil {
			return logged, err
		}
	}
	if event != nil {
		return event, nil // its slot of the ring was emptied since it was asked for again
	}
	return nil, fmt.Errorf("%w among those that are parked or were emitted around its time", ErrNotFound)
}

// windows are the parts of the log to look for an id in, likely ones first.
func (s *subscription) windows(ctx context.Context, tx pgx.Tx, id uuid.UUID) (list [][2]int64, err error) {
	at, tells := idTime(id)
	if tells {
		place, err := s.seqOf(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, [2]int64{place - nearby, place + nearby})
	} else { // an id that somebody chose is kept for the sake of dedupe, with its time
		err := tx.QueryRow(ctx, s.stream.SQL(`SELECT created_at FROM {dedupe} WHERE id = $1`), [16]byte(id)).Scan(&at)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, err
		}
		tells = err == nil
	}
	if tells {
		from, err := s.seqAt(ctx, tx, at.Add(-searchAround), false)
		if err != nil {
			return nil, err
		}
		until, err := s.seqAt(ctx, tx, at.Add(searchAround), true)
		if err != nil {
			return nil, err
		}
		if middle := from + (until-from)/2; until-from > searchSeqs {
			from, until = middle-searchSeqs/2, middle+searchSeqs/2
		}
		list = append(list, [2]int64{from, until})
	}
	var last int64
	err = tx.QueryRow(ctx, s.stream.SQL(lastSeqSQL)).Scan(&last)
	return append(list, [2]int64{last - searchSeqs, last}), err
}

// one reads a row, or nil.
func one(rows pgx.Rows, err error) func(whole bool) (*found, error) {
	return func(whole bool) (*found, error) {
		if err != nil {
			return nil, err
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (found, error) { return scanFound(row, whole) })
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return &list[0], nil
	}
}

// historySQL are the settled pages that an event was in. The pages of an event that was never
// alone end near it. $1 subscription, $2 shard, $3 seq.
const historySQL = `
SELECT d.part, d.settled_at, d.worker::text
FROM (SELECT * FROM {deliveries} WHERE subscription = $1 AND shard = $2 AND to_seq >= $3 ORDER BY to_seq LIMIT 1000) AS d
WHERE d.from_seq <= $3 AND (d.part = 'parked' OR EXISTS (
  SELECT FROM {stream} AS e WHERE e.shard = $2 AND e.seq = $3
    AND pg_visible_in_snapshot(e.xid, d.s2) AND NOT pg_visible_in_snapshot(e.xid, d.s1)))
ORDER BY d.settled_at`

// history is what the stream knows of an event's past.
func (s *subscription) history(ctx context.Context, tx pgx.Tx, event *found) ([]Moment, error) {
	list := []Moment{{At: event.CreatedAt, What: "emitted"}}
	rows, err := tx.Query(ctx, s.stream.SQL(historySQL), onTheFly, s.name, event.shard, event.seq)
	if err != nil {
		return nil, err
	}
	var part, worker string
	var at time.Time
	var pages []int
	alone := false
	_, err = pgx.ForEachRow(rows, []any{&part, &at, &worker}, func() error {
		m := Moment{At: at.UTC(), What: "delivered", Detail: "by relay " + worker}
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
		case alone: // it may have been parked then, and delivered since, or been replayed since
			list[i].What = "read"
		}
	}
	if event.parkedAt.Valid {
		what := map[State]string{StateDead: "dead", StateHeld: "held", StateWaiting: "waits behind an earlier event of its key"}[event.State]
		if what == "" && event.Attempts > 0 {
			what = "failed"
		}
		if what != "" {
			list = append(list, Moment{At: event.changed.Time.UTC(), What: what, Detail: event.LastError})
		}
	}
	return list, nil
}

// inOrder sorts a timeline.
func inOrder(list []Moment) []Moment {
	slices.SortStableFunc(list, func(a, b Moment) int { return a.At.Compare(b.At) })
	return list
}
