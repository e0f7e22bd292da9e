package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/pgstream"
)

// The stream's SQL, written out by hand for a program that is alone with it.
const (
	bareStreamSession = `SET plan_cache_mode = force_generic_plan; SET jit = off; SET max_parallel_workers_per_gather = 0;
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off`

	bareStreamRefresh = `WITH q AS MATERIALIZED (SELECT coalesce(pg_sequence_last_value('outbox_stream_seq'), 0) AS v)
		UPDATE outbox_shards AS c SET hi = q.v FROM q WHERE c.subscription = $1 AND c.s2 IS NULL`

	bareStreamOpen = `WITH q AS MATERIALIZED (SELECT coalesce(pg_sequence_last_value('outbox_stream_seq'), 0) AS v)
		UPDATE outbox_shards AS c SET q2 = c.hi, s2 = pg_current_snapshot(), hi = q.v, pos = 0
		FROM q
		WHERE c.subscription = $1 AND c.s2 IS NULL
		  AND (q.v > c.q1 OR EXISTS (SELECT FROM pg_snapshot_xip(c.s1) AS x WHERE pg_visible_in_snapshot(x, pg_current_snapshot())))
		RETURNING c.shard, c.s1::text, c.q1, c.s2::text, c.hi`

	bareStreamRead = `SELECT e.seq, e.id, coalesce(e.namespace, ''), e.topic, e.type, coalesce(e.key, ''), coalesce(e.aggregate_type, ''),
		  coalesce(e.aggregate_id, ''), e.tenant_id, e.headers, coalesce(e.content_type, ''), e.payload, e.not_before, e.max_attempts, e.created_at
		FROM outbox_stream AS e
		WHERE e.shard = $1 AND e.seq > $2 AND e.seq <= $3
		  AND NOT pg_visible_in_snapshot(e.xid, $4::text::pg_snapshot) AND pg_visible_in_snapshot(e.xid, $5::text::pg_snapshot)
		ORDER BY e.seq LIMIT $6`

	bareStreamSettle = `UPDATE outbox_shards SET pos = $5,
		  s1 = CASE WHEN $6 THEN s2 ELSE s1 END, q1 = CASE WHEN $6 THEN q2 ELSE q1 END,
		  s2 = CASE WHEN $6 THEN NULL ELSE s2 END, q2 = CASE WHEN $6 THEN NULL ELSE q2 END
		WHERE subscription = $1 AND shard = $2 AND pos = $3 AND s2::text = $4`
)

// bareShard is a shard in an open window.
type bareShard struct {
	number  int16
	s1, s2  string
	q1, hi  int64
	pos     int64 // as the table has it
	reading int64
}

// streamRow is what a program written by hand reads of an event.
type streamRow struct {
	seq                  int64
	id                   [16]byte
	text                 [7]string
	tenant               *[16]byte
	headers              []byte
	payload              []byte
	notBefore, createdAt *time.Time
	maxAttempts          *int32
}

// drainBare drains the log with the stream's SQL and nothing else: one connection, one
// goroutine, prepared statements, pages of a thousand. It has no late part, because nobody
// writes meanwhile.
func (s *streamLog) drainBare(ctx context.Context) (time.Duration, error) {
	name, err := s.subscribe(ctx, pgstream.StartOldest)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // all is committed by then
	if _, err := conn.Exec(ctx, bareStreamSession); err != nil {
		return 0, err
	}
	for {
		n, err := bareWindow(ctx, conn, name)
		if err != nil {
			return 0, fmt.Errorf("the bare loop: %w", err)
		}
		if n == 0 {
			break
		}
	}
	took := time.Since(start)
	return took, s.drained(ctx, name)
}

// bareWindow opens a window in every shard and reads and settles all of it. It returns the
// number of shards that had one.
func bareWindow(ctx context.Context, conn *pgx.Conn, subscription string) (int, error) {
	if _, err := conn.Exec(ctx, bareStreamRefresh, subscription); err != nil {
		return 0, err
	}
	rows, err := conn.Query(ctx, bareStreamOpen, subscription)
	if err != nil {
		return 0, err
	}
	shards, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (sh bareShard, err error) {
		return sh, row.Scan(&sh.number, &sh.s1, &sh.q1, &sh.s2, &sh.hi)
	})
	if err != nil {
		return 0, err
	}
	for _, sh := range shards {
		sh.reading = sh.q1
		for open := true; open; {
			if open, err = sh.page(ctx, conn, subscription); err != nil {
				return 0, err
			}
		}
	}
	return len(shards), nil
}

// page reads and settles one page. It reports whether there may be more.
func (sh *bareShard) page(ctx context.Context, conn *pgx.Conn, subscription string) (more bool, err error) {
	rows, err := conn.Query(ctx, bareStreamRead, sh.number, sh.reading, sh.hi, sh.s1, sh.s2, bareBatch)
	if err != nil {
		return false, err
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r streamRow, err error) {
		return r, row.Scan(&r.seq, &r.id, &r.text[0], &r.text[1], &r.text[2], &r.text[3], &r.text[4], &r.text[5], &r.tenant, &r.headers,
			&r.text[6], &r.payload, &r.notBefore, &r.maxAttempts, &r.createdAt)
	})
	if err != nil {
		return false, err
	}
	more = len(events) == bareBatch
	to := int64(0)
	if more {
		to = events[len(events)-1].seq
	}
	tag, err := conn.Exec(ctx, bareStreamSettle, subscription, sh.number, sh.pos, sh.s2, to, !more)
	if err != nil {
		return false, err
	}
	if tag.RowsAffected() != 1 {
		return false, errors.New("a cursor was moved, though nobody else is here")
	}
	sh.pos, sh.reading = to, to
	return more, nil
}
