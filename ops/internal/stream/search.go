package stream

import (
	"bytes"
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

// The log has no index on ids or times. But its events are nearly in the order of time, so a binary search finds a time,
// and an id that begins with one.

// seqAtSQL reads when the first event of each shard from a place on was emitted. $1 subscription, $2 seq.
const seqAtSQL = `
SELECT min(e.created_at), max(e.created_at), coalesce(min(e.seq), 0)
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT e.created_at, e.seq FROM {stream} AS e WHERE e.shard = c.shard AND e.seq >= $2 ORDER BY e.seq LIMIT 1
) AS e
WHERE c.subscription = $1`

// seqAt finds the first place in the log from which the next event of some shard, or with late of every shard, was
// emitted at or after a time. A long transaction leaves events with the time of its beginning among later ones; a
// single such event does not mislead the search.
func (s *Subscription) seqAt(ctx context.Context, tx pgx.Tx, at time.Time, late bool) (int64, error) {
	return s.bisect(ctx, tx, func(middle int64) (reached bool, seq int64, err error) {
		var first, last *time.Time
		err = tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, seqAtSQL), query.Unprepared, s.name, middle).Scan(&first, &last, &seq)
		return first == nil || !late && !last.Before(at) || late && !first.Before(at), seq, err
	})
}

// bisect finds the first place in the log for which reached returns true. It also returns the seq of the next event
// from there on, so that gaps are skipped.
func (s *Subscription) bisect(ctx context.Context, tx pgx.Tx, reached func(middle int64) (bool, int64, error)) (low int64, err error) {
	var high int64
	if err := tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, lastSeqSQL)).Scan(&high); err != nil {
		return 0, err
	}
	for low < high {
		middle := low + (high-low)/2
		is, seq, err := reached(middle)
		if err != nil {
			return 0, err
		}
		if is {
			high = middle
		} else {
			low = max(middle, seq) + 1
		}
	}
	return low, nil
}

// seqOfSQL reads the id of the first event of each shard from a place on. $1 subscription, $2 seq.
const seqOfSQL = `
SELECT array_agg(e.id), coalesce(min(e.seq), 0)
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT e.id, e.seq FROM {stream} AS e WHERE e.shard = c.shard AND e.seq >= $2 ORDER BY e.seq LIMIT 1
) AS e
WHERE c.subscription = $1`

// seqOf finds the approximate place of an id that tells its time. Ids rise along the log, except for ids chosen by
// callers and those of concurrent transactions.
func (s *Subscription) seqOf(ctx context.Context, tx pgx.Tx, id uuid.UUID) (int64, error) {
	return s.bisect(ctx, tx, func(middle int64) (reached bool, seq int64, err error) {
		var plain [][16]byte
		err = tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, seqOfSQL), query.Unprepared, s.name, middle).Scan(&plain, &seq)
		telling, later := 0, 0
		for _, other := range plain {
			if _, tells := query.IDTime(other); tells {
				telling++
				if bytes.Compare(other[:], id[:]) >= 0 {
					later++
				}
			}
		}
		return 2*later >= telling, seq, err // if none tells its time, act as if at the end
	})
}

const (
	// lastSeqSQL is the end of the log.
	lastSeqSQL = `SELECT coalesce(pg_sequence_last_value({'stream_seq'}), 0) + 1`
	// nearby is how many seqs around its place an event is searched by its id.
	nearby = query.ScanLimit / 2
	// searchAround is how far around its time an event is searched, with at most searchSeqs events.
	searchAround = 30 * time.Second
	searchSeqs   = 5 * query.ScanLimit
)

// search finds an event by its id: among the parked ones, then around the time that its id tells, then among the
// newest.
func (s *Subscription) search(ctx context.Context, tx pgx.Tx, id uuid.UUID, whole bool) (*found, error) {
	event, err := s.one(ctx, tx, whole, `SELECT `+eventList("p", parkedState, whole)+`
FROM {parked} AS p WHERE p.id = $1 AND p.subscription = $2 ORDER BY p.replayed LIMIT 1`, query.Unprepared, [16]byte(id), s.name)
	if err != nil || event != nil && !event.Replayed {
		return event, err
	}
	windows, err := s.windows(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, window := range windows {
		logged, err := s.one(ctx, tx, whole, `SELECT `+eventList("e", logState, whole)+`
FROM {shards} AS c JOIN {stream} AS e ON e.shard = c.shard AND e.seq >= $3 AND e.seq < $4
LEFT JOIN {parked} AS p ON p.subscription = c.subscription AND p.shard = e.shard AND p.seq = e.seq AND NOT p.replayed
WHERE c.subscription = $2 AND e.id = $1 LIMIT 1`, query.Unprepared, [16]byte(id), s.name, window[0], window[1])
		if err != nil || logged != nil {
			return logged, err
		}
	}
	if event != nil {
		return event, nil // its slot was emptied since the replay
	}
	return nil, fmt.Errorf("%w among those that are parked or were emitted around its time", view.ErrNotFound)
}

// windows returns the parts of the log to search for an id, likely ones first.
func (s *Subscription) windows(ctx context.Context, tx pgx.Tx, id uuid.UUID) (list [][2]int64, err error) {
	at, tells := query.IDTime(id)
	if tells {
		place, err := s.seqOf(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, [2]int64{place - nearby, place + nearby})
	} else { // the dedupe table keeps an id that a caller chose, with its time
		err := tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, `SELECT created_at FROM {dedupe} WHERE id = $1`), [16]byte(id)).Scan(&at)
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
	err = tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, lastSeqSQL)).Scan(&last)
	return append(list, [2]int64{last - searchSeqs, last}), err
}

// one reads the event of a statement, or nil.
func (s *Subscription) one(ctx context.Context, tx pgx.Tx, whole bool, sql string, args ...any) (*found, error) {
	rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, sql), args...) // the rows say what failed
	event, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (found, error) { return scanFound(row, whole) })
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &event, err
}
