package pgstream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// burnXids makes a server older by n transactions.
const burnXids = `DO $$ BEGIN FOR i IN 1..%d LOOP
	BEGIN CREATE TEMP TABLE burnt (); RAISE EXCEPTION USING ERRCODE = 'OB001'; EXCEPTION WHEN SQLSTATE 'OB001' THEN NULL; END;
END LOOP; END $$`

// refused fails unless the stream is refused with a text.
func (h *harness) refused(t *testing.T, subscription, because string) {
	t.Helper()
	store, err := pgstream.Open(t.Context(), h.pool, pgstream.Stream{}, pgstream.Config{Subscription: subscription})
	if err == nil {
		store.Close()
	}
	if !errors.Is(err, pgstream.ErrRestored) || !strings.Contains(err.Error(), because) {
		t.Errorf("opened, or refused for something else than %q: %v", because, err)
	}
}

// restore is the stream of a harness on another, younger server.
func (h *harness) restore(t *testing.T) *harness {
	t.Helper()
	restored := &harness{url: pgtest.Restore(t, h.url)}
	restored.pool = pgtest.Connect(t, restored.url)
	return restored
}

func (h *harness) repair(t *testing.T, options pgstream.RepairOptions) pgstream.Repaired {
	t.Helper()
	done, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, options)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestRestoredUnderWriters restores into a younger server whose xids then pass the old cursors, while producers write
// in every way: it is refused all the time, and after the repair each unread event arrives.
func TestRestoredUnderWriters(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	pgtest.Exec(t, h.pool, strings.ReplaceAll(burnXids, "%d", "3000"))
	store := h.open(t, pgstream.Config{})
	old := emit(t, h.pool, "a", "b", "")
	drain(t, store)
	unread := emit(t, h.pool, "a", "c")
	r := h.restore(t)
	r.refused(t, "", "stamps")

	// Savepoints: the row's xmin is not its transaction's.
	savepoint, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := savepoint.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fresh := insert(t, inner, "a", "d")
	if err := errors.Join(inner.Commit(t.Context()), savepoint.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	// Prepared before the repair, committed after it; and one that is simply open.
	var prepared []uuid.UUID
	err = pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
		prepared = insert(t, tx, "a", "p")
		_, err := tx.Exec(t.Context(), `PREPARE TRANSACTION 'late'`)
		return err
	})
	if err != nil && !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Fatal(err)
	}
	open, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	running := insert(t, open, "a", "o")

	// The server's xids pass the old cursors, and more is written.
	pgtest.Exec(t, r.pool, strings.ReplaceAll(burnXids, "%d", "6000"))
	fresh = append(fresh, emit(t, r.pool, "a", "")...)
	r.refused(t, "", "stamps")

	dry := r.repair(t, pgstream.RepairOptions{DryRun: true})
	r.refused(t, "", "stamps")
	done := r.repair(t, pgstream.RepairOptions{})
	if dry.Events != done.Events || !slices.Equal(dry.BySubscription, done.BySubscription) {
		t.Errorf("the dry run said %+v, and the repair %+v", dry, done)
	}
	if sub := done.BySubscription[0]; sub.Unread+sub.Doubtful != int64(len(unread)+len(fresh)) || sub.Doubtful == 0 {
		t.Errorf("parked %+v, want %d unread and %d in doubt", sub, len(unread), len(fresh))
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, r.pool, `COMMIT PREPARED 'late'`)
	last := emit(t, r.pool, "a")
	got := drain(t, r.open(t, pgstream.Config{}))
	if want := slices.Concat(unread, fresh, prepared, running, last); !sameSet(got, want) {
		t.Errorf("after the repair %d events arrive, want %d; delivered before: %v", len(got), len(want), slices.ContainsFunc(old, func(id uuid.UUID) bool { return slices.Contains(got, id) }))
	}
	if again := r.repair(t, pgstream.RepairOptions{}); len(again.BySubscription) > 0 {
		t.Errorf("repaired twice: %+v", again)
	}
	if n := r.count(t, `SELECT count(*) FROM outbox_deliveries WHERE s2 IS NOT NULL AND pg_snapshot_xmax(s2) < (SELECT min(stamp)::text::xid8 FROM outbox_history)`); n > 0 {
		t.Errorf("%d deliveries of the old history are left", n)
	}
}

// TestStampsKeep has what keeps a history: freezing, and a rewrite of the table. Rows that are added, copied or gone
// do not.
func TestStampsKeep(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	pgtest.Exec(t, h.pool, `VACUUM (FREEZE) outbox_history`)
	pgtest.Exec(t, h.pool, `VACUUM (FULL) outbox_history`)
	h.open(t, pgstream.Config{})
	for name, change := range map[string]string{
		"written anew": `CREATE TEMP TABLE kept AS SELECT * FROM outbox_history; DELETE FROM outbox_history; INSERT INTO outbox_history SELECT * FROM kept`,
		"added":        `INSERT INTO outbox_history SELECT * FROM outbox_history`,
		"one gone":     `DELETE FROM outbox_history WHERE stamp = (SELECT min(stamp) FROM outbox_history)`,
		"gone":         `DELETE FROM outbox_history`,
	} {
		pgtest.Exec(t, h.pool, change)
		h.refused(t, "", "stamps")
		if h.repair(t, pgstream.RepairOptions{}); t.Failed() {
			t.Fatalf("stamps %s", name)
		}
		h.open(t, pgstream.Config{}).Close()
	}
}

// TestStampsRowByRow writes both rows again in two transactions that are next to each other, as a load with --inserts on
// a server of the same age does: the first row even gets the xid that it had.
func TestStampsRowByRow(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	for range 5 {
		if n := h.count(t, `SELECT count(*) FROM outbox_history AS a JOIN outbox_history AS b ON b.stamp - a.stamp BETWEEN 1 AND 10`); n > 0 {
			t.Errorf("the stamps are next to each other, as two transactions in a row are")
		}
		pgtest.Exec(t, h.pool, `DELETE FROM outbox_history`)
		pgtest.Exec(t, h.pool, `SELECT outbox_stamp('outbox_history')`)
	}
}

// TestDoubtStays sees evidence that is gone a moment later: the refusal is not.
func TestDoubtStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ make, unmake, because string }{
		"sequence": {`SELECT setval('outbox_stream_seq', 2)`, `SELECT setval('outbox_stream_seq', 1000)`, "is behind"},
		"cursors": {
			`UPDATE outbox_shards SET s1 = '999999999:999999999:'`, `UPDATE outbox_shards SET s1 = '1:1:'`, "ahead",
		},
		"rows": {
			`UPDATE outbox_stream SET xid = '999999999' WHERE seq = 3`, `UPDATE outbox_stream SET xid = pg_current_xact_id() WHERE seq = 3`, "not reached",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, pgstream.Shape{Shards: 1})
			want := emit(t, h.pool, "a", "b", "c")
			pgtest.Exec(t, h.pool, c.make)
			h.refused(t, "", c.because)
			pgtest.Exec(t, h.pool, c.unmake)
			h.refused(t, "", c.because)
			h.repair(t, pgstream.RepairOptions{})
			if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
				t.Errorf("after the repair %v arrive, want %v", got, want)
			}
		})
	}
}

// TestRepairOneSubscription lets one subscription go on, and the others later.
func TestRepairOneSubscription(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "other"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, h.pool, strings.ReplaceAll(burnXids, "%d", "3000"))
	old := emit(t, h.pool, "a", "b")
	drain(t, h.open(t, pgstream.Config{}))
	want := emit(t, h.pool, "a")
	r := h.restore(t)
	if _, err := (pgstream.Stream{}).Repair(t.Context(), r.pool, pgstream.RepairOptions{Subscriptions: []string{"nobody"}}); !errors.Is(err, pgstream.ErrNoSubscription) {
		t.Errorf("repaired a subscription that is not there: %v", err)
	}
	done := r.repair(t, pgstream.RepairOptions{Subscriptions: []string{"default"}})
	if done.Subscriptions != 1 || len(done.BySubscription) != 2 || !done.BySubscription[1].Waits {
		t.Errorf("repaired %+v", done)
	}
	first := r.open(t, pgstream.Config{})
	if got := drain(t, first); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.refused(t, "other", "has not been repaired")
	late := emit(t, r.pool, "a")
	r.repair(t, pgstream.RepairOptions{Subscriptions: []string{"other"}})
	if got := drain(t, r.open(t, pgstream.Config{Subscription: "other"})); !sameSet(got, slices.Concat(old, want, late)) {
		t.Errorf("the other subscription got %v, want %v", got, slices.Concat(old, want, late))
	}
	if got := drain(t, first); !slices.Equal(got, late) {
		t.Errorf("the first subscription got %v, want %v", got, late)
	}
}

// TestRepairDoubledNumbers has events with numbers that others have, in the log and parked: each arrives.
func TestRepairDoubledNumbers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	first := emit(t, h.pool, "a", "b", "c", "d")
	store := h.open(t, pgstream.Config{})
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 4})
	if err != nil || len(batch.Messages()) != 4 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	// The second is parked.
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Failed}, {Kind: outbox.Delivered}, {Kind: outbox.Delivered}}); err != nil {
		t.Fatal(err)
	}
	batch.Abandon()
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 1, false)`)
	second := emit(t, h.pool, "x", "y", "z")
	h.refused(t, "", "sequence")
	done := h.repair(t, pgstream.RepairOptions{})
	if done.Events != 3 {
		t.Errorf("repaired %+v, want 3 events", done)
	}
	got := drain(t, h.open(t, pgstream.Config{}))
	if want := append(slices.Clone(second), first[1]); !sameSet(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := h.count(t, `SELECT count(*) FROM (SELECT FROM outbox_stream GROUP BY shard, seq HAVING count(*) > 1) AS twice`); n > 0 {
		t.Errorf("%d numbers are there twice after the repair", n)
	}
}

// TestRepairBesideOwnEvents loads the events of another stream beside those that this one has delivered: its cursors are
// past the xids of some of them, and have seen none.
func TestRepairBesideOwnEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	own := emit(t, h.pool, "a", "b", "c")
	store := h.open(t, pgstream.Config{})
	if got := drain(t, store); !sameSet(got, own) {
		t.Fatalf("got %v, want %v", got, own)
	}
	store.Close()
	// One is older than the table, one could be of a transaction of this server; both have numbers that are taken.
	loaded := []uuid.UUID{uuid.New(), uuid.New()}
	pgtest.Exec(t, h.pool, `
		INSERT INTO outbox_stream (shard, id, topic, type, payload, xid, seq)
		SELECT 0, l.id, 'orders', 'made', '{}', coalesce(l.xid, (SELECT xid FROM outbox_stream ORDER BY xid LIMIT 1)), l.seq
		FROM unnest($1::uuid[], ARRAY['5', NULL]::xid8[], ARRAY[1, 2]) AS l(id, xid, seq)`, loaded)
	pgtest.Exec(t, h.pool, `INSERT INTO outbox_history (history, stamp) SELECT gen_random_uuid(), 7 FROM generate_series(1, 2)`)
	h.refused(t, "", "stamps")
	h.repair(t, pgstream.RepairOptions{})
	got := drain(t, h.open(t, pgstream.Config{}))
	for _, id := range loaded {
		if !slices.Contains(got, id) {
			t.Errorf("%s was loaded, and did not arrive; got %v", id, got)
		}
	}
}

// TestSubscriptionOfAnOlderProgram is made as programs do that know nothing of histories: it is of the one that there is.
func TestSubscriptionOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	pgtest.Exec(t, h.pool, `INSERT INTO outbox_subscriptions (name) VALUES ('older')`)
	pgtest.Exec(t, h.pool, `INSERT INTO outbox_shards (subscription, shard, fence, s1, q1, hi, pos) VALUES ('older', 0, 1, '1:1:', 0, 0, 0)`)
	want := emit(t, h.pool, "a")
	if got := drain(t, h.open(t, pgstream.Config{Subscription: "older"})); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestHeartbeatChecksTheHistory leaves the history under a relay whose connections stay.
func TestHeartbeatChecksTheHistory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	drain(t, store)
	pgtest.Exec(t, h.pool, `DELETE FROM outbox_history`)
	store.PassTime()
	if _, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("claimed: %v", err)
	}
	h.repair(t, pgstream.RepairOptions{})
	want := emit(t, h.pool, "a")
	if got := drain(t, store); !slices.Equal(got, want) {
		t.Errorf("after the repair the relay gets %v, want %v", got, want)
	}
}
