package pginbox_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// age inserts marks as old as this by the database's clock.
func (b *bench) age(n int, old string) {
	b.t.Helper()
	pgtest.Exec(b.t, b.pool, `INSERT INTO outbox_inbox (consumer, event_id, processed_at)
SELECT 'billing', gen_random_uuid(), now() - $2::interval FROM generate_series(1, $1)`, n, old)
}

// purge purges through either door.
func (d *door) purge(ctx context.Context, olderThan time.Duration) (int64, error) {
	if d.db == nil {
		return d.inbox.Purge(ctx, d.pool, olderThan)
	}
	return d.inbox.PurgeSQL(ctx, d.db, olderThan)
}

func TestPurge(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		d := b.door(name)
		b.age(2500, "25 hours") // steps, and a last one that is not full
		b.age(1, "30 days")
		b.age(10, "23 hours")
		event := uuid.New()
		b.deliver(d, event, true)
		for _, want := range []int64{2501, 0} {
			if n, err := d.purge(t.Context(), 24*time.Hour); n != want || err != nil {
				t.Errorf("purged %d, %v; want %d", n, err, want)
			}
		}
		if n := b.count(`SELECT count(*) FROM outbox_inbox`); n != 11 {
			t.Errorf("%d marks are left, want 11", n)
		}
		b.deliver(d, event, false)
	})
}

// TestPurgeBeside has a purge pass over what another one is deleting.
func TestPurgeBeside(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench, name string) {
		t.Helper()
		b.age(5, "2 days")
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		_, err = tx.Exec(t.Context(), `SELECT FROM outbox_inbox LIMIT 2 FOR UPDATE`)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := b.door(name, "lock_timeout=1s").purge(t.Context(), 24*time.Hour); n != 3 || err != nil {
			t.Errorf("purged %d, %v; want 3", n, err)
		}
	})
}

func TestPurgeRefused(t *testing.T) {
	t.Parallel()
	in, err := pginbox.New(pginbox.Config{Horizon: 7 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, olderThan := range []time.Duration{-time.Hour, 0, 7*24*time.Hour - 1} {
		// Refused before the database is asked, so that none is needed.
		if n, err := in.Purge(t.Context(), nil, olderThan); n != 0 || err == nil {
			t.Errorf("a purge of what is older than %s was not refused", olderThan)
		}
		if n, err := in.PurgeSQL(t.Context(), nil, olderThan); n != 0 || err == nil {
			t.Errorf("a purge of what is older than %s was not refused", olderThan)
		}
	}
}

// TestPurgePlan has a step read no more than it deletes, in a table of any length.
func TestPurgePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.door("pgx").inbox
	b.age(200_000, "1 hour")
	b.age(5000, "2 days")
	pgtest.Exec(t, b.pool, `VACUUM ANALYZE outbox_inbox`)
	for _, c := range []struct {
		hours  float64
		blocks int // at most
	}{{24, 6000}, {72, 20}} {
		var text string
		row := b.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+pginbox.PurgeStatement(in), c.hours*3600, time.Unix(0, 0), 1000)
		if err := row.Scan(&text); err != nil {
			t.Fatal(err)
		}
		var plans []struct{ Plan pgtest.PlanNode }
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
		root := plans[0].Plan
		indexed := false
		root.Walk(func(n *pgtest.PlanNode) {
			indexed = indexed || n.Index == "outbox_inbox_processed_at"
			if strings.HasPrefix(n.Type, "Seq Scan") || n.Type == "Sort" {
				t.Errorf("older than %.0f hours: a %s\n%s", c.hours, n.Type, text)
			}
		})
		if blocks := root.Hit + root.Read; !indexed || blocks > c.blocks {
			t.Errorf("older than %.0f hours: index used: %t, %d blocks, want at most %d\n%s", c.hours, indexed, blocks, c.blocks, text)
		}
	}
}
