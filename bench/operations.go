package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	operationRows     = 2_000_000
	fullOperationRows = 20_000_000 // with FULL=1 in the environment
	// operationLimit is how long a person waits for an answer.
	operationLimit = 300 * time.Millisecond
)

// deadSQL makes every fiftieth of the waiting events dead, and leaves statistics.
var deadSQL = map[string]string{
	"modkit": `UPDATE modkit_outbox_events SET status = 'dead', last_error = 'order ' || md5(id::text) || ' is gone' WHERE status = 'pending' AND right(id::text, 2) < '20'`,
	"doorito": `UPDATE outbox_event SET status = 'failed', next_attempt_at = NULL, error_message = 'order ' || md5(id::text) || ' is gone'
		WHERE status = 'pending' AND right(id::text, 2) < '20'`,
	"packfinderz": `INSERT INTO outbox_dlq (event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count)
		SELECT id, event_type, aggregate_type, aggregate_id, payload_json, 'terminal', created_at, 1 FROM outbox_events
		WHERE published_at IS NULL AND right(id::text, 2) < '20'`,
}

// benchOperations measures what the person on call waits for: the overview, and the first
// page of every list that an index serves.
func benchOperations(ctx context.Context, b *bench) error {
	rows := operationRows
	if os.Getenv("FULL") == "1" {
		rows = fullOperationRows
	}
	for _, shipped := range shipped.All() {
		if err := benchTableOperations(ctx, b, shipped, rows); err != nil {
			return fmt.Errorf("%s: %w", shipped.Layout.Name, err)
		}
	}
	return benchStreamOperations(ctx, b, rows)
}

func benchTableOperations(ctx context.Context, b *bench, shipped shipped.Layout, rows int) error {
	pool, err := b.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate(ctx, pool, shipped); err != nil {
		return err
	}
	waiting := rows / 10
	if err := load(ctx, pool, shipped, 1, rows-waiting, true); err != nil {
		return err
	}
	if err := load(ctx, pool, shipped, rows-waiting+1, rows, false); err != nil {
		return err
	}
	for _, sql := range []string{deadSQL[shipped.Layout.Name], "VACUUM ANALYZE"} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make dead events: %w", err)
		}
	}
	events, err := ops.Table(pool, shipped.Layout)
	if err != nil {
		return err
	}
	if err := answers(ctx, b, events); err != nil {
		return err
	}
	return b.drop(ctx, pool.Config().ConnString())
}

func benchStreamOperations(ctx context.Context, b *bench, rows int) error {
	pool, err := b.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := loadOperationStream(ctx, pool, rows); err != nil {
		return fmt.Errorf("standard: %w", err)
	}
	events, err := ops.Stream(pool, pgstream.Stream{}, "")
	if err != nil {
		return err
	}
	return answers(ctx, b, events)
}

// loadOperationStream makes a stream with events that are read, unread and dead.
func loadOperationStream(ctx context.Context, pool *pgxpool.Pool, rows int) error {
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		return err
	}
	if err := migrateFiles(ctx, pool, files); err != nil {
		return err
	}
	const step, insert = 100_000, `INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
		SELECT outbox_shard('k' || g % 10000, NULL), (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(g), 15, '0'))::uuid,
		  'orders', 'order_paid', 'k' || g % 10000, convert_to($3, 'UTF8') FROM generate_series($1::bigint, $2::bigint) AS g`
	waiting := rows / 10
	for first := 1; first <= rows; first += step {
		if first > rows-waiting && first <= rows-waiting+step {
			// What came so far is read.
			_, err := pool.Exec(ctx, `UPDATE outbox_shards SET s1 = pg_current_snapshot(), q1 = v, hi = v FROM (SELECT pg_sequence_last_value('outbox_stream_seq') AS v) AS q`)
			if err != nil {
				return fmt.Errorf("move the cursors: %w", err)
			}
		}
		if _, err := pool.Exec(ctx, insert, first, min(first+step-1, rows), string(payload())); err != nil {
			return fmt.Errorf("load events: %w", err)
		}
	}
	for _, sql := range []string{
		`INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, last_error, id, topic, type, key, payload, created_at)
			SELECT 'default', shard, seq, 'dead', false, 10, 'order ' || seq || ' is gone', id, topic, type, key, payload, created_at FROM outbox_stream WHERE seq % 100 = 0 AND seq < 1000000`,
		`VACUUM ANALYZE`,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make dead events: %w", err)
		}
	}
	return nil
}

// answers measures one outbox. The middle one of seven answers counts, after one that warms up.
func answers(ctx context.Context, b *bench, events *ops.Outbox) error {
	is := events.Describe()
	newest, err := events.List(ctx, ops.Filter{}, ops.Page{})
	if err != nil {
		return err
	}
	some := &newest.Events[len(newest.Events)-1]
	questions := map[string]func() error{
		"overview": func() error { _, err := events.Overview(ctx); return err },
		"dead groups": func() error {
			groups, err := events.DeadGroups(ctx)
			if err == nil && groups.Events == 0 {
				err = fmt.Errorf("%s has no dead events", is.Name)
			}
			return err
		},
		"show": func() error { _, err := events.Show(ctx, some.ID); return err },
	}
	filters := map[string]ops.Filter{"all": {}, "id": {IDs: []uuid.UUID{some.ID}}}
	for _, state := range is.States {
		filters[string(state)] = ops.Filter{State: state}
	}
	if is.Has(ops.FieldType) {
		filters["type"] = ops.Filter{Type: some.Type}
	}
	if is.Has(ops.FieldTopic) {
		filters["topic"] = ops.Filter{Topic: some.Topic}
	}
	if is.Has(ops.FieldKey) {
		filters["key"] = ops.Filter{Key: some.Key}
	}
	filters["hour"] = ops.Filter{Since: some.CreatedAt.Add(-time.Hour), Until: some.CreatedAt.Add(time.Second)}
	for name, filter := range filters {
		questions["list, "+name] = func() error { _, err := events.List(ctx, filter, ops.Page{}); return err }
	}
	for name, ask := range questions {
		var times []time.Duration
		for round := range 8 {
			start := time.Now()
			if err := ask(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if round > 0 {
				times = append(times, time.Since(start))
			}
		}
		took := middle(times)
		b.promise(is.Layout+": "+name, took <= operationLimit, "%8s of %s", took.Round(time.Millisecond/10), operationLimit)
	}
	return nil
}
