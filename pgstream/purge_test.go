package pgstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// settle settles a batch with one outcome per event, by id; the rest is delivered.
func settle(t *testing.T, batch outbox.Batch, outcomes map[uuid.UUID]outbox.Outcome) {
	t.Helper()
	list := make([]outbox.Outcome, len(batch.Messages()))
	for i, message := range batch.Messages() {
		list[i] = outbox.Outcome{Kind: outbox.Delivered}
		if outcome, ok := outcomes[message.ID]; ok {
			list[i] = outcome
		}
	}
	if lost, err := batch.Settle(t.Context(), list); err != nil || len(lost) > 0 {
		t.Fatalf("lost %v: %v", lost, err)
	}
	batch.Abandon()
}

// TestPurgeDead gives dead events a retention. What is old and parked for another reason is still to be delivered,
// and another subscription's dead events are not this one's to delete.
func TestPurgeDead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "other"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	died := outbox.Outcome{Kind: outbox.Died, Error: "no use", Reason: outbox.ReasonTerminal}
	fails := outbox.Outcome{Kind: outbox.Failed, Error: "not now", Delay: time.Hour}
	behind := outbox.Outcome{Kind: outbox.Released}
	ids := emit(t, h.pool, "old", "k", "k", "held", "young")
	old, retried, waiting, held, young := ids[0], ids[1], ids[2], ids[3], ids[4]
	for _, name := range []string{"default", "other"} {
		batch, err := h.open(t, pgstream.Config{Subscription: name}).Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err != nil || len(batch.Messages()) != 5 {
			t.Fatalf("claimed %v: %v", batch, err)
		}
		settle(t, batch, map[uuid.UUID]outbox.Outcome{old: died, retried: fails, waiting: behind, held: fails, young: died})
		if _, err := (pgstream.Stream{}).Hold(t.Context(), h.pool, name, held); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, h.pool, `UPDATE outbox_parked SET changed_at = now() - interval '3 days' WHERE id <> $1`, young)

	store := h.open(t, pgstream.Config{})
	purge := outbox.Purge{Retention: time.Hour, DeadLetterRetention: 48 * time.Hour, DryRun: true}
	if n, err := store.Purge(t.Context(), purge); err != nil || n != 1 {
		t.Errorf("a dry run counts %d events, want the one that is dead for three days: %v", n, err)
	}
	purge.DryRun = false
	if n, err := store.Purge(t.Context(), purge); err != nil || n != 1 {
		t.Errorf("purged %d events, want the one that is dead for three days: %v", n, err)
	}
	left := func(subscription string) (text string) {
		t.Helper()
		err := h.pool.QueryRow(t.Context(), `SELECT string_agg(key || ' ' || state, ', ' ORDER BY seq) FROM outbox_parked WHERE subscription = $1`,
			subscription).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const undelivered = "k retry, k waiting, held held, young dead"
	if got := left("default"); got != undelivered {
		t.Errorf("left are %q, want %q", got, undelivered)
	}
	if got, want := left("other"), "old dead, "+undelivered; got != want {
		t.Errorf("another subscription has left %q, want %q", got, want)
	}
}

// TestPurgeBesideTheLog trims what is kept beside the log, and no more: a dedupe key that is gone too early lets its
// event in twice.
func TestPurgeBesideTheLog(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	const emitted = `SELECT outbox_emit('made', '{}', 'orders', p_dedupe_key => $1)`
	store := h.open(t, pgstream.Config{})
	pgtest.Exec(t, h.pool, emitted, "old")
	drain(t, store)
	pgtest.Exec(t, h.pool, `UPDATE outbox_dedupe SET created_at = now() - interval '3 days'`)
	pgtest.Exec(t, h.pool, `UPDATE outbox_deliveries SET settled_at = now() - interval '3 days'`)
	pgtest.Exec(t, h.pool, emitted, "young")
	drain(t, store)
	if n, err := store.Purge(t.Context(), outbox.Purge{Retention: 48 * time.Hour}); err != nil || n != 0 {
		t.Fatalf("purged %d events of today: %v", n, err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_dedupe WHERE dedupe_key = 'old'`); n != 0 {
		t.Error("a dedupe key is kept for longer than the retention")
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_dedupe WHERE dedupe_key = 'young'`); n != 1 {
		t.Error("a dedupe key within the retention is gone: its event would be let in twice")
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_deliveries`); n != 1 {
		t.Errorf("%d deliveries are recorded, want the one within the retention", n)
	}
}

// refuse makes the database refuse an operation on a table.
func (h *harness) refuse(t *testing.T, operation, table string) {
	t.Helper()
	pgtest.Exec(t, h.pool, `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$`)
	pgtest.Exec(t, h.pool, `CREATE TRIGGER refuses BEFORE `+operation+` ON `+table+` FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
}

// TestPurgeGoesOn has each step of a purge fail in turn: the others run all the same, and the failure is reported.
func TestPurgeGoesOn(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"outbox_parked", "outbox_deliveries", "outbox_dedupe", "slot"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, pgstream.Shape{Shards: 1})
			store := h.open(t, pgstream.Config{})
			h.emitDaysAgo(t, 4, 1)
			h.emitDaysAgo(t, 3, 1)
			pgtest.Exec(t, h.pool, `SELECT outbox_emit('made', '{}', 'orders', p_dedupe_key => 'old')`)
			batch := claimNow(t, store, 3)
			settle(t, batch, map[uuid.UUID]outbox.Outcome{batch.Messages()[2].ID: {Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}})
			claimNow(t, store, 0).Abandon() // which closes the window
			pgtest.Exec(t, h.pool, `UPDATE outbox_parked SET changed_at = now() - interval '3 days'`)
			pgtest.Exec(t, h.pool, `UPDATE outbox_deliveries SET settled_at = now() - interval '3 days'`)
			pgtest.Exec(t, h.pool, `UPDATE outbox_dedupe SET created_at = now() - interval '3 days'`)
			// What is left by each step when the others run; the older slot comes first.
			left := map[string]string{
				"outbox_parked": `SELECT count(*) FROM outbox_parked`, "outbox_deliveries": `SELECT count(*) FROM outbox_deliveries`,
				"outbox_dedupe": `SELECT count(*) FROM outbox_dedupe`,
				"slot":          `SELECT count(*) FROM outbox_stream WHERE created_at < now() - interval '95 hours'`,
				"younger slot":  `SELECT count(*) FROM outbox_stream WHERE created_at BETWEEN now() - interval '95 hours' AND now() - interval '1 hour'`,
			}
			if table == "slot" {
				var slot string
				if err := h.pool.QueryRow(t.Context(), `SELECT tableoid::regclass::text FROM outbox_stream ORDER BY created_at LIMIT 1`).Scan(&slot); err != nil {
					t.Fatal(err)
				}
				h.refuse(t, "TRUNCATE", slot)
			} else {
				h.refuse(t, "DELETE", table)
			}
			purge := outbox.Purge{Retention: time.Hour, DeadLetterRetention: time.Hour}
			if _, err := store.Purge(t.Context(), purge); err == nil || !strings.Contains(err.Error(), "not today") {
				t.Errorf("the failure is not reported: %v", err)
			}
			for what, sql := range left {
				if n := h.count(t, sql); (n > 0) != (what == table) {
					t.Errorf("%d rows of %s are left", n, what)
				}
			}
		})
	}
}

// TestSweepGoesOn has the look for keys that wait behind nothing fail: the next slot is emptied all the same.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	h.emitDaysAgo(t, 7, 1)
	drain(t, store)
	h.refuse(t, "UPDATE", "outbox_parked")
	if _, err := store.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the failure is not reported: %v", err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != 0 {
		t.Errorf("%d events of a slot whose turn comes are left", n)
	}
}

// TestPurgeCountsNothingUnasked has nobody ask how many events were in a slot: to know, all of it would be read.
func TestPurgeCountsNothingUnasked(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	h.emitDaysAgo(t, 4, 3)
	drain(t, store)
	if n, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour}); err != nil || n != 0 {
		t.Errorf("%d events were counted that nobody is told of: %v", n, err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// TestPurgeFreesKeys purges dead events that block their keys: what waits behind them is due at once.
func TestPurgeFreesKeys(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	blocks := pgstream.Subscription{Name: "blocks", OnDead: pgstream.DeadBlocks}
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, blocks, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	store := h.open(t, pgstream.Config{Subscription: blocks.Name})
	ids := emit(t, h.pool, "k", "k")
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, batch, map[uuid.UUID]outbox.Outcome{
		ids[0]: {Kind: outbox.Died, Error: "no use", Reason: outbox.ReasonTerminal}, ids[1]: {Kind: outbox.Released},
	})
	if got := drain(t, store); len(got) > 0 {
		t.Fatalf("%v were delivered before the dead event of their key", got)
	}
	pgtest.Exec(t, h.pool, `UPDATE outbox_parked SET changed_at = now() - interval '3 days'`)
	if _, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour, DeadLetterRetention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, store); len(got) != 1 || got[0] != ids[1] {
		t.Errorf("after the purge %v is delivered, want %s", got, ids[1])
	}
}
