package pgstream_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// isTrue waits until a query says so.
func isTrue(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	await.Until(t, sql, func() (holds bool) {
		return pool.QueryRow(t.Context(), sql).Scan(&holds) == nil && holds
	})
}

// TestPromotion promotes a standby that lacks the last moments of the primary. What a relay had settled in them is published
// again, as far as the standby has it; what the standby does not have is counted, and nothing else is.
func TestPromotion(t *testing.T) {
	t.Parallel()
	primary := pgtest.Server(t, nil)
	old := pgtest.Connect(t, primary.URL("postgres"))
	files, err := pgstream.Migrations(pgstream.Shape{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, old, "", files)
	standby := pgtest.Standby(t, primary, nil)
	copied := pgtest.Connect(t, standby.URL("postgres"))
	h := &harness{url: pgserver.HostsURL("postgres", primary, standby)}
	h.pool = pgtest.Connect(t, h.url)
	store := h.open(t, pgstream.Config{})

	emit(t, h.pool, "a", "b", "c")
	settle(t, claimNow(t, store, 3), nil)
	again := emit(t, h.pool, "a", "b")
	pgtest.Exec(t, old, `CREATE TABLE mark ()`)
	isTrue(t, copied, `SELECT to_regclass('mark') IS NOT NULL`)
	pgtest.Exec(t, copied, `ALTER SYSTEM SET primary_conninfo = ''`)
	pgtest.Exec(t, copied, `SELECT pg_reload_conf()`)
	isTrue(t, copied, `SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)`)
	// The standby gets no more.
	settle(t, claimNow(t, store, 2), nil)
	emit(t, h.pool, "a", "b", "c", "d")
	settle(t, claimNow(t, store, 4), nil)
	type known struct {
		From, To, Relays, Repeated, Orphaned int64
		Noticed, More                        bool
	}
	promotion := func() (p known) {
		t.Helper()
		var at *time.Time
		err := h.pool.QueryRow(t.Context(), streamsql.Names("", streamsql.Promotion)).
			Scan(&at, &p.From, &p.To, &p.Relays, &p.Repeated, &p.Orphaned, &p.More)
		if err != nil {
			t.Fatal(err)
		}
		p.Noticed = at != nil
		return p
	}
	if p := promotion(); p != (known{}) {
		t.Errorf("before there was a promotion: %+v", p)
	}
	store.AwaitReadAhead()
	if err := primary.Halt(t.Context(), pgserver.Immediate); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, copied, `SELECT pg_promote()`)
	h.pool.Reset()
	if p := promotion(); p != (known{From: 1, To: 2}) {
		t.Errorf("before a relay has noticed: %+v", p)
	}
	// Seqs of what is gone are given out again.
	emit(t, h.pool, "a", "b", "c", "d")

	var batch outbox.Batch
	await.Until(t, "the store to find the promoted server", func() bool {
		store.PassTime()
		got, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err == nil && len(got.Messages()) > 0 {
			batch = got
		}
		return batch != nil
	})
	seen := make(map[string]bool)
	for _, message := range batch.Messages() {
		seen[message.ID.String()] = true
	}
	for _, id := range again {
		if !seen[id.String()] {
			t.Errorf("%s was settled on the old primary only, and is not published again", id)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d events are claimed, want 2 again and 4 new ones", len(seen))
	}
	settle(t, batch, nil)
	p := promotion()
	if p.From != 1 || p.To != 2 || !p.Noticed || p.Relays != 1 || p.More {
		t.Errorf("afterwards: %+v", p)
	}
	if p.Repeated != int64(len(again)) || p.Orphaned != 4 {
		t.Errorf("%d events published again and %d without an event, want %d and 4", p.Repeated, p.Orphaned, len(again))
	}
	// A relay that starts now adds nothing.
	claimNow(t, h.open(t, pgstream.Config{}), 0).Abandon()
	if later := promotion(); later != p {
		t.Errorf("another relay changed it to %+v", later)
	}
}
