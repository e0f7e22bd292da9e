package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts/shipped"
)

// bulkInsert writes events number $1 to $2 with the payload $3, delivered or not, as if a
// thousand had come with each transaction, one a millisecond, some time ago. Their ids
// rise with time, as those of emit do.
func bulkInsert(layout string, delivered bool) string {
	const (
		id   = `(lpad(to_hex(1700000000000 + g / 1000), 12, '0') || '7000' || '8' || lpad(to_hex(g), 15, '0'))::uuid`
		when = `timestamptz '2023-11-14 22:13:20Z' + g / 1000 * interval '1 ms'`
		from = ` FROM generate_series($1::bigint, $2::bigint) g`
	)
	pick := func(ifDelivered, ifNot string) string {
		if delivered {
			return ifDelivered
		}
		return ifNot
	}
	switch layout {
	case "packfinderz":
		return `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, created_at, published_at)
			SELECT ` + id + `, 'order_created', 'vendor_order', ` + id + `, $3::text::jsonb, ` + when + `, ` + pick(when, "NULL") + from
	case "doorito":
		return `INSERT INTO outbox_event (id, event_type, aggregate_type, aggregate_id, idempotency_key, payload, status,
			  next_attempt_at, delivered_at, created_at, updated_at)
			SELECT ` + id + `, 'file.stored', 'UploadFile', g::text, g::text, $3::text::jsonb, '` + pick("delivered", "pending") + `',
			  ` + pick("NULL", when) + `, ` + pick(when, "NULL") + `, ` + when + `, ` + when + from
	default:
		return `INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, next_attempt_at, created_at, updated_at)
			SELECT ` + id + `, 'shop', 'orders', $3::text::jsonb, '` + pick("delivered", "pending") + `', ` +
			when + `, ` + when + `, ` + when + from
	}
}

// countOpen counts the events that are not delivered.
func countOpen(layout string) string {
	switch layout {
	case "packfinderz":
		return `SELECT count(*) FROM outbox_events WHERE published_at IS NULL`
	case "doorito":
		return `SELECT count(*) FROM outbox_event WHERE status <> 'delivered'`
	default:
		return `SELECT count(*) FROM modkit_outbox_events WHERE status <> 'delivered'`
	}
}

// load writes events and leaves the table as one in use: vacuumed, with statistics. There
// is no checkpoint, for the same reason as with the peers.
func load(ctx context.Context, pool *pgxpool.Pool, shipped shipped.Layout, first, last int, delivered bool) error {
	const step = 100_000
	layout := shipped.Layout.Name
	for ; first <= last; first += step {
		_, err := pool.Exec(ctx, bulkInsert(layout, delivered), first, min(first+step-1, last), string(payload()))
		if err != nil {
			return fmt.Errorf("load events: %w", err)
		}
	}
	if _, err := pool.Exec(ctx, "VACUUM ANALYZE "+shipped.Layout.Table); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// loaded makes a database with a layout's table and events that wait in it.
func (b *bench) loaded(ctx context.Context, shipped shipped.Layout, events int) (url string, err error) {
	pool, err := b.pool(ctx)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	if err := migrate(ctx, pool, shipped); err != nil {
		return "", err
	}
	return pool.Config().ConnString(), load(ctx, pool, shipped, 1, events, false)
}

// drained checks that every event of a layout is delivered.
func drained(ctx context.Context, layout, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // the answer is there by then
	var left int
	if err := conn.QueryRow(ctx, countOpen(layout)).Scan(&left); err != nil {
		return fmt.Errorf("count what is left: %w", err)
	}
	if left != 0 {
		return fmt.Errorf("%d events are not delivered", left)
	}
	return nil
}

// drop removes a database that has served, so that its pages are written before the next
// one is measured and not while.
func (b *bench) drop(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read a database's URL: %w", err)
	}
	conn, err := pgx.Connect(ctx, b.server.URL("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // the database is gone by then
	if _, err := conn.Exec(ctx, "DROP DATABASE "+config.Database+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop a database: %w", err)
	}
	return nil
}
