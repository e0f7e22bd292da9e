package pgstream_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestRepair restores a dump with events in every state: delivered, in the middle of a
// window, parked, and unread.
func TestRepair(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "other"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	// The old server is older than the new one will be.
	for range 2000 {
		pgtest.Exec(t, h.pool, `SELECT pg_current_xact_id()`)
	}
	store := h.open(t, pgstream.Config{})
	before := emit(t, h.pool, "a")
	drain(t, store) // from now on the cursor has a snapshot of the old server
	first := emit(t, h.pool, "a", "b", "a", "c")
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
	if err != nil || len(batch.Messages()) != 2 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	// a is delivered and b fails; the second half of the window is unread.
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Failed}}); err != nil {
		t.Fatal(err)
	}
	batch.Abandon()
	second := emit(t, h.pool, "b", "a", "")

	restored := &harness{url: pgtest.Restore(t, h.url)}
	restored.pool = pgtest.Connect(t, restored.url)
	if _, err := pgstream.Open(t.Context(), restored.pool, pgstream.Stream{}, pgstream.Config{}); !errors.Is(err, pgstream.ErrRestored) {
		t.Fatalf("a restored stream was opened: %v", err)
	}
	// A producer did not wait for the repair. The old snapshots would say that this was delivered.
	early := emit(t, restored.pool, "a")
	done, err := pgstream.Stream{}.Repair(t.Context(), restored.pool, pgstream.RepairOptions{})
	// One was parked before; the other subscription had read nothing.
	if err != nil || done.Subscriptions != 2 || done.Events != 5+1+8+1 {
		t.Fatalf("repaired %+v: %v", done, err)
	}
	if again, err := (pgstream.Stream{}).Repair(t.Context(), restored.pool, pgstream.RepairOptions{}); err != nil || again.Events+int64(again.Subscriptions) > 0 {
		t.Errorf("repaired twice: %+v, %v", again, err)
	}
	fresh := emit(t, restored.pool, "a", "")
	all := slices.Concat(first, second, early, fresh)
	got := drain(t, restored.open(t, pgstream.Config{}))
	if !sameSet(got, all[1:]) {
		t.Errorf("got %v, want %v", got, all[1:])
	}
	inOrder(t, got, first[2], second[1], early[0], fresh[0])
	inOrder(t, got, first[1], second[0])
	other := restored.open(t, pgstream.Config{Subscription: "other"})
	all = append(before, all...)
	if got := drain(t, other); !sameSet(got, all) {
		t.Errorf("the other subscription got %v, want %v", got, all)
	}
	// It works on, and a new subscription finds everything.
	last := emit(t, restored.pool, "a")
	if got := drain(t, other); !slices.Equal(got, last) {
		t.Errorf("after the repair: %v, want %v", got, last)
	}
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), restored.pool, pgstream.Subscription{Name: "late"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, restored.open(t, pgstream.Config{Subscription: "late"})); !sameSet(got, append(all, last...)) {
		t.Errorf("from the oldest: %d events, want %d", len(got), len(all)+1)
	}
}

// TestRepairRaisesTheSequence has a sequence that is behind its events, as after a restore of tables alone. A seq that is
// drawn twice is taken for an event that is parked already, and the new one is lost.
func TestRepairRaisesTheSequence(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	drain(t, store)
	old := emit(t, h.pool, "a", "a", "a")
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 3 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	settle(t, batch, map[uuid.UUID]outbox.Outcome{
		old[0]: {Kind: outbox.Failed, Delay: time.Hour}, old[1]: {Kind: outbox.Released}, old[2]: {Kind: outbox.Released},
	})
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 1)`)
	if _, err := pgstream.Open(t.Context(), h.pool, pgstream.Stream{}, pgstream.Config{}); !errors.Is(err, pgstream.ErrRestored) {
		t.Fatalf("a stream whose sequence went back was opened: %v", err)
	}
	if _, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); err != nil {
		t.Fatal(err)
	}
	fresh := emit(t, h.pool, "a", "a")
	if n := h.count(t, `SELECT count(*) FROM (SELECT FROM outbox_stream GROUP BY seq HAVING count(*) > 1) AS twice`); n > 0 {
		t.Errorf("after the repair %d seqs were drawn twice", n)
	}
	store = h.open(t, pgstream.Config{})
	drain(t, store) // the new ones wait behind the old ones
	h.Age(t, 2*time.Hour)
	got := drain(t, store)
	if want := slices.Concat(old, fresh); !slices.Equal(got, want) {
		t.Errorf("after the repair %v arrive, want %v", got, want)
	}
}

// TestRepairKeepsOrder has the first of the events fail that a repair has parked: the others of its key wait behind it.
func TestRepairKeepsOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	want := emit(t, h.pool, "a", "a", "a")
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET q1 = 1000000`) // as one of another server
	if done, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); err != nil || done.Events != 3 {
		t.Fatalf("repaired %+v: %v", done, err)
	}
	store := h.open(t, pgstream.Config{})
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) == 0 || batch.Messages()[0].ID != want[0] {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	outcomes := map[uuid.UUID]outbox.Outcome{want[0]: {Kind: outbox.Failed, Delay: time.Hour}}
	for _, id := range want[1:] {
		outcomes[id] = outbox.Outcome{Kind: outbox.Released}
	}
	settle(t, batch, outcomes)
	if got := drain(t, store); len(got) > 0 {
		t.Errorf("%v overtook the first of their key, which failed", got)
	}
	h.Age(t, 2*time.Hour)
	if got := drain(t, store); !slices.Equal(got, want) {
		t.Errorf("after the repair %v arrive, want %v", got, want)
	}
}

// TestRepairFilter repairs subscriptions that take some of the events: none is parked for a subscription that would
// not have taken it.
func TestRepairFilter(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	tenant := uuid.New()
	filters := map[string]pgstream.Filter{
		"namespace": {Namespace: "shop"}, "topics": {Topics: []string{"billing"}}, "types": {Types: []string{"paid"}}, "tenant": {TenantID: tenant},
	}
	for name, filter := range filters {
		sub := pgstream.Subscription{Name: name, Filter: filter}
		if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, sub, pgstream.StartOldest); err != nil {
			t.Fatal(err)
		}
	}
	emit(t, h.pool, "a") // for none of them
	want := make(map[string]uuid.UUID)
	for name, sql := range map[string]string{
		"namespace": `outbox_emit('made', '{}', 'orders', p_namespace => 'shop')`,
		"topics":    `outbox_emit('made', '{}', 'billing')`,
		"types":     `outbox_emit('paid', '{}', 'orders')`,
		"tenant":    `outbox_emit('made', '{}', 'orders', p_tenant_id => '` + tenant.String() + `')`,
	} {
		var id uuid.UUID
		if err := h.pool.QueryRow(t.Context(), `SELECT `+sql).Scan(&id); err != nil {
			t.Fatal(err)
		}
		want[name] = id
	}
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET q1 = 1000000`) // as one of another server
	if done, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); err != nil || done.Events != 5+4 {
		t.Errorf("repaired %+v, want the five events of the default subscription and one of each other: %v", done, err)
	}
	for name, id := range want {
		if got := drain(t, h.open(t, pgstream.Config{Subscription: name})); !slices.Equal(got, []uuid.UUID{id}) {
			t.Errorf("%s: got %v, want %v", name, got, id)
		}
	}
}

// inOrder fails unless the ids come in this order.
func inOrder(t *testing.T, got []uuid.UUID, want ...uuid.UUID) {
	t.Helper()
	for i := 1; i < len(want); i++ {
		if slices.Index(got, want[i-1]) > slices.Index(got, want[i]) {
			t.Errorf("%s came after %s", want[i-1], want[i])
		}
	}
}

// TestRepairTakesShardsFromRelays repairs under a relay that has a page out.
func TestRepairTakesShardsFromRelays(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	want := emit(t, h.pool, "a", "b")
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 2 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	// A row from the future, as a restored one would be.
	var id uuid.UUID
	err = h.pool.QueryRow(t.Context(), `INSERT INTO outbox_stream (shard, id, topic, type, payload, xid)
		VALUES (0, gen_random_uuid(), 'orders', 'made', '{}', '999999999') RETURNING id`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); err != nil || done.Events != 3 {
		t.Fatalf("repaired %+v: %v", done, err)
	}
	lost, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Delivered}})
	if err != nil || !sameSet(lost, want) {
		t.Errorf("the page was settled over the repair; lost %v: %v", lost, err)
	}
	batch.Abandon()
	if got := drain(t, store); !sameSet(got, append(want, id)) {
		t.Errorf("got %v, want %v", got, append(want, id))
	}
}

// TestRestoredDatabaseStopsARelay checks every new connection, not only the first.
func TestRestoredDatabaseStopsARelay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	store := h.open(t, pgstream.Config{})
	drain(t, store)
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET s1 = '999999999:999999999:'`)
	pgtest.Exec(t, h.pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	var err error
	for range 5 { // the first finds its connection gone
		if _, err = store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); errors.Is(err, pgstream.ErrRestored) {
			return
		}
	}
	t.Errorf("claimed on a restored database: %v", err)
}

// TestRepairDelayed repairs a stream with events for later: they are not due before, and nothing of their key waits for
// them.
func TestRepairDelayed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	pgtest.Exec(t, h.pool, `INSERT INTO outbox_stream (shard, id, topic, type, key, payload, not_before)
		VALUES (0, gen_random_uuid(), 'orders', 'made', 'a', '{}', now() + interval '1 hour')`)
	now := emit(t, h.pool, "a", "a")
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET q1 = 1000000`) // as one of another server
	if done, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); err != nil || done.Events != 3 {
		t.Fatalf("repaired %+v: %v", done, err)
	}
	store := h.open(t, pgstream.Config{})
	if got := drain(t, store); !slices.Equal(got, now) {
		t.Errorf("after the repair %v arrive, want %v", got, now)
	}
	h.Age(t, 2*time.Hour)
	if got := drain(t, store); len(got) != 1 {
		t.Errorf("%d events arrive when their time has come, want 1", len(got))
	}
}

// TestMissingCursors takes cursors away: their shards would be read by nobody.
func TestMissingCursors(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 4})
	want := emit(t, h.pool, make([]string, 100)...)
	store := h.open(t, pgstream.Config{})
	if got := drain(t, store); !sameSet(got, want) {
		t.Fatalf("%d events arrive, want %d", len(got), len(want))
	}
	store.Close()
	pgtest.Exec(t, h.pool, `DELETE FROM outbox_shards WHERE shard IN (1, 2)`)
	more := emit(t, h.pool, make([]string, 100)...)
	h.refused(t, "", "lacks cursors")
	inShards := h.count(t, `SELECT count(*) FROM outbox_stream WHERE shard IN (1, 2)`)
	for _, dry := range []bool{true, false} {
		done := h.repair(t, pgstream.RepairOptions{DryRun: dry})
		if len(done.BySubscription) != 1 || done.Events != 0 || done.BySubscription[0].Cursors != 2 || done.BySubscription[0].Reread != inShards {
			t.Errorf("dry run %t: repaired %+v, want 2 cursors that read %d events", dry, done, inShards)
		}
	}
	again := drain(t, h.open(t, pgstream.Config{}))
	arrived := make(map[uuid.UUID]int)
	for _, id := range again {
		arrived[id]++
	}
	lost := 0
	for _, id := range more {
		if arrived[id] != 1 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d events arrive not once", lost, len(more))
	}
}

// TestRepairByAnotherRole is refused before anything was tried; a dry run says who could.
func TestRepairByAnotherRole(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	emit(t, h.pool, "a", "b", "c")
	drain(t, h.open(t, pgstream.Config{}))
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 1)`)
	pgtest.Exec(t, h.pool, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO PUBLIC`)
	pgtest.Exec(t, h.pool, `GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC`)
	role := pgtest.AsRole(t, h.pool)
	if _, err := (pgstream.Stream{}).Repair(t.Context(), role, pgstream.RepairOptions{}); !errors.Is(err, pgstream.ErrNotOwner) {
		t.Errorf("repaired by a role that owns nothing: %v", err)
	}
	h.refused(t, "", "is behind")
	if done, err := (pgstream.Stream{}).Repair(t.Context(), role, pgstream.RepairOptions{DryRun: true}); err != nil || done.Owner != "postgres" {
		t.Errorf("a dry run: %+v, %v", done, err)
	}
	if done := h.repair(t, pgstream.RepairOptions{DryRun: true}); done.Owner != "" {
		t.Errorf("a dry run by the owner: %+v", done)
	}
}

// TestRepairThatFails ends a repair after it has raised the sequence, which no rollback undoes: the refusal stays.
func TestRepairThatFails(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	for range 3 {
		emit(t, h.pool, make([]string, 10)...)
		drain(t, store)
	}
	store.Close()
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 1)`)
	want := emit(t, h.pool, "a", "b")
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_shards ADD CONSTRAINT never CHECK (hi > 0)`)
	if _, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); err == nil {
		t.Fatal("the repair came to its end")
	}
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_shards DROP CONSTRAINT never`)
	if err := (pgstream.Stream{}).Check(t.Context(), h.pool, pgstream.DefaultSubscription); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("after a repair that failed: %v", err)
	}
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
		t.Errorf("%d events arrive, want %d", len(got), len(want))
	}
}
