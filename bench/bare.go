package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// bareBatch is how many rows one claim of the bare loop takes: as many as the relay's.
const bareBatch = 1000

// bareRow is what a program written by hand for one table reads of an event.
type bareRow struct {
	tid                    pgtype.TID
	id                     [16]byte
	text                   [4]string // type, aggregate, topic: what the table has
	payload                []byte
	attempts, maxAttempts  int
	mark, created, ordered time.Time
	exhausted              bool
}

// bareLoop is the relay's SQL for one layout, written out by hand.
type bareLoop struct {
	// begin and commit stand around a batch under row locks.
	begin, commit string
	// claim has the parameter $1, the number of rows, and those of claimArgs.
	claim     string
	claimArgs []any
	// into are the places of the columns of a claim.
	into func(*bareRow) []any
	// settle has the parameters $1 ctids and $2 ids; with fenced, $3 is the mark of the
	// claim, and those of settleArgs follow. IS TRUE hides the fence from the planner, which
	// would else look for held rows by an index, expect one, and find a batch.
	settle     string
	settleArgs []any
	fenced     bool
}

func bareFor(layout string) bareLoop {
	worker := uuid.New()
	switch layout {
	case "packfinderz":
		return bareLoop{
			begin: "BEGIN", commit: "COMMIT",
			claim: `SELECT t.ctid, t.id, t.event_type::text, t.aggregate_type::text, t.aggregate_id::text, t.payload_json::text,
				  t.attempt_count, t.created_at, t.attempt_count >= $2
				FROM outbox_events t
				WHERE t.published_at IS NULL
				  AND NOT EXISTS (SELECT FROM outbox_dlq d WHERE d.event_id = t.id AND d.retried_at IS NULL)
				ORDER BY t.created_at, t.id LIMIT $1 FOR UPDATE OF t SKIP LOCKED`,
			claimArgs: []any{10},
			into: func(r *bareRow) []any {
				return []any{&r.tid, &r.id, &r.text[0], &r.text[1], &r.text[2], &r.payload, &r.attempts, &r.created, &r.exhausted}
			},
			settle: `UPDATE outbox_events t SET published_at = clock_timestamp()
				FROM unnest($1::tid[], $2::uuid[]) s(tid, id) WHERE t.ctid = s.tid AND t.id = s.id RETURNING t.id`,
		}
	case "doorito":
		return bareLoop{
			begin: "BEGIN", commit: "COMMIT",
			claim: `SELECT t.ctid, t.id, t.event_type::text, t.aggregate_type::text, t.aggregate_id::text, t.idempotency_key::text,
				  t.payload::text, t.max_attempts, t.attempts, t.created_at, t.next_attempt_at, t.attempts >= t.max_attempts
				FROM outbox_event t
				WHERE t.status = 'pending' AND t.next_attempt_at <= now()
				ORDER BY t.next_attempt_at, t.id LIMIT $1 FOR UPDATE OF t SKIP LOCKED`,
			into: func(r *bareRow) []any {
				return []any{
					&r.tid, &r.id, &r.text[0], &r.text[1], &r.text[2], &r.text[3], &r.payload,
					&r.maxAttempts, &r.attempts, &r.created, &r.ordered, &r.exhausted,
				}
			},
			settle: `UPDATE outbox_event t
				SET updated_at = clock_timestamp(), next_attempt_at = NULL, status = 'delivered', delivered_at = clock_timestamp()
				FROM unnest($1::tid[], $2::uuid[]) s(tid, id) WHERE t.ctid = s.tid AND t.id = s.id RETURNING t.id`,
		}
	default:
		return bareLoop{
			claim: `WITH picked AS MATERIALIZED (
				  SELECT t.ctid AS tid, t.next_attempt_at AS ordered, t.attempts >= 10 AS exhausted
				  FROM modkit_outbox_events t
				  WHERE t.status = 'pending' AND t.next_attempt_at <= now()
				  ORDER BY t.next_attempt_at, t.id LIMIT $1 FOR UPDATE OF t SKIP LOCKED)
				UPDATE modkit_outbox_events t SET locked_by = $2, locked_until = now() + interval '30 s', status = 'processing',
				  attempts = t.attempts + CASE WHEN picked.exhausted THEN 0 ELSE 1 END, updated_at = now()
				FROM picked WHERE t.ctid = picked.tid
				RETURNING t.ctid, t.locked_until, t.id, t.namespace, t.topic, coalesce(t.tenant_id::text, ''),
				  coalesce(t.dedupe_key, ''), t.payload::text, t.attempts, t.created_at, picked.ordered, picked.exhausted`,
			claimArgs: []any{[16]byte(worker)},
			into: func(r *bareRow) []any {
				return []any{
					&r.tid, &r.mark, &r.id, &r.text[0], &r.text[1], &r.text[2], &r.text[3], &r.payload,
					&r.attempts, &r.created, &r.ordered, &r.exhausted,
				}
			},
			settle: `UPDATE modkit_outbox_events t SET locked_by = NULL, locked_until = NULL, updated_at = now(), status = 'delivered'
				FROM unnest($1::tid[], $2::uuid[]) s(tid, id)
				WHERE t.ctid = s.tid AND t.id = s.id
				  AND (t.locked_until = $3 AND t.locked_by = $4 AND t.status = 'processing') IS TRUE RETURNING t.id`,
			settleArgs: []any{[16]byte(worker)},
			fenced:     true,
		}
	}
}

// runBare drains the table at url with the relay's SQL and nothing else: one connection,
// one goroutine, prepared statements. It is what a relay is measured against.
func runBare(ctx context.Context, layout, url string) (time.Duration, error) {
	start := time.Now()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // all is committed by then
	loop := bareFor(layout)
	for {
		n, err := loop.round(ctx, conn)
		if err != nil {
			return 0, fmt.Errorf("the bare loop: %w", err)
		}
		if n == 0 {
			return time.Since(start), nil
		}
	}
}

// round claims, reads and settles one batch.
func (l *bareLoop) round(ctx context.Context, conn *pgx.Conn) (n int, err error) {
	if l.begin != "" {
		if _, err := conn.Exec(ctx, l.begin); err != nil {
			return 0, err
		}
		defer func() {
			if _, commitErr := conn.Exec(ctx, l.commit); err == nil {
				err = commitErr
			}
		}()
	}
	rows, err := conn.Query(ctx, l.claim, append([]any{bareBatch}, l.claimArgs...)...)
	if err != nil {
		return 0, err
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r bareRow, err error) {
		err = row.Scan(l.into(&r)...)
		return r, err
	})
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	tids, ids := make([]pgtype.TID, len(claimed)), make([][16]byte, len(claimed))
	for i := range claimed {
		tids[i], ids[i] = claimed[i].tid, claimed[i].id
	}
	args := []any{tids, ids}
	if l.fenced {
		args = append(args, claimed[0].mark)
	}
	rows, err = conn.Query(ctx, l.settle, append(args, l.settleArgs...)...)
	if err != nil {
		return 0, err
	}
	settled, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return 0, err
	}
	if len(settled) != len(claimed) {
		return 0, errors.New("a row was lost, though nobody else is here")
	}
	return len(claimed), nil
}
