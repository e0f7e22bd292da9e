package pgstream_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// count is the answer of a query for one number.
func (h *harness) count(t *testing.T, sql string) (n int64) {
	t.Helper()
	if err := h.pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// cursors is where the cursors are. Their snapshots are left out: transactions of other
// databases move those.
func (h *harness) cursors(t *testing.T) (text string) {
	t.Helper()
	err := h.pool.QueryRow(t.Context(), `
		SELECT string_agg(concat_ws(' ', subscription, shard, fence, q1, hi, pos), E'\n' ORDER BY subscription, shard)
		FROM outbox_shards`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// emitDaysAgo writes events to the slot of an earlier day.
func (h *harness) emitDaysAgo(t *testing.T, days int, n int) {
	t.Helper()
	pgtest.Exec(t, h.pool, `
		INSERT INTO outbox_stream (slot, shard, id, topic, type, payload, created_at)
		SELECT floor(extract(epoch FROM at) / 86400)::bigint % 8, outbox_shard(NULL, id), id, 'orders', 'made', '{}', at
		FROM (SELECT gen_random_uuid() AS id, now() - make_interval(days => $1) AS at FROM generate_series(1, $2)) AS new`, days, n)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	stream := pgstream.Stream{}
	if err := stream.CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "slow"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	store := h.open(t, pgstream.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for days, n := range []int{3, 4, 5, 0, 0, 0, 6, 7} {
		h.emitDaysAgo(t, days, n)
	}
	left := func(want int64) {
		t.Helper()
		if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != want {
			t.Fatalf("%d events are left, want %d", n, want)
		}
	}
	drain(t, store)
	left(25)
	// The slot of seven days ago is next; the slow subscription has not read it.
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	left(25)
	if !strings.Contains(log.String(), "lag") || !strings.Contains(log.String(), "slow") {
		t.Errorf("nobody was told: %s", log.String())
	}
	if got := drain(t, h.open(t, pgstream.Config{Subscription: "slow"})); len(got) != 25 {
		t.Fatalf("the slow subscription got %d events", len(got))
	}
	store.PassTime()
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	left(18)
	// A retention empties what is older, and nothing of today.
	dry, err := store.Purge(t.Context(), outbox.Purge{Retention: 36 * time.Hour, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	left(18)
	done, err := store.Purge(t.Context(), outbox.Purge{Retention: 36 * time.Hour, Progress: func(int64) {}})
	if err != nil || done != dry {
		t.Fatalf("purged %d, a dry run said %d: %v", done, dry, err)
	}
	// Yesterday's slot ended less than 36 hours ago; that of two days ago more or less.
	if n := h.count(t, `SELECT count(*) FROM outbox_stream WHERE created_at > now() - interval '25 hours'`); n != 7 {
		t.Errorf("%d events of today and yesterday are left, want 7", n)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream WHERE created_at < now() - interval '3 days'`); n != 0 {
		t.Errorf("%d old events are left", n)
	}
}

// TestRotationWaitsForNobody has a reader, such as pg_dump, on the slot: the rotation gives
// up, and emits go on meanwhile.
func TestRotationWaitsForNobody(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	store := h.open(t, pgstream.Config{})
	h.emitDaysAgo(t, 7, 5)
	drain(t, store)
	dump, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dump.Rollback(t.Context()) }()
	if _, err := dump.Exec(t.Context(), `LOCK TABLE outbox_stream IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	emitted := make(chan error)
	go func() {
		defer close(emitted)
		for range 50 {
			if _, err := h.pool.Exec(t.Context(), insertSQL, [][16]byte{uuid.New()}, []string{"a"}); err != nil {
				emitted <- err
				return
			}
		}
	}()
	start := time.Now()
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it waited %s for the reader", took)
	}
	if err := <-emitted; err != nil {
		t.Error(err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream WHERE created_at < now() - interval '6 days'`); n != 5 {
		t.Errorf("%d of 5 events are left under a reader", n)
	}
	if err := dump.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.PassTime()
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream WHERE created_at < now() - interval '6 days'`); n != 0 {
		t.Errorf("%d events are left afterwards", n)
	}
}

// TestPurgeCountsWhatIsGone has a subscription lag behind: what is kept for it is not counted, by a dry run neither.
func TestPurgeCountsWhatIsGone(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "slow"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	store := h.open(t, pgstream.Config{})
	h.emitDaysAgo(t, 5, 3)
	drain(t, store)
	purged := func(want int64) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			if n, err := store.Purge(t.Context(), outbox.Purge{Retention: 72 * time.Hour, DryRun: dry, Progress: func(int64) {}}); err != nil || n != want {
				t.Errorf("purged %d events (dry run: %t), want %d: %v", n, dry, want, err)
			}
		}
	}
	purged(0)
	if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != 3 {
		t.Fatalf("%d events are left, want 3", n)
	}
	drain(t, h.open(t, pgstream.Config{Subscription: "slow"}))
	purged(3)
	if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != 0 {
		t.Errorf("%d events are left, want none", n)
	}
}

// TestRotationOfARestoredStream has cursors of another server, which say that everything is read. Nothing is emptied by
// them.
func TestRotationOfARestoredStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	store := h.open(t, pgstream.Config{})
	drain(t, store)        // its connections were checked before, and stay
	h.emitDaysAgo(t, 7, 5) // in the slot whose turn comes next
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET s1 = '999999999:999999999:'`)
	store.PassTime() // a sweep rotates again
	if _, err := store.Sweep(t.Context()); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("a restored stream was rotated: %v", err)
	}
	if _, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour}); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("a restored stream was purged: %v", err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_stream`); n != 5 {
		t.Errorf("%d of 5 unread events are left", n)
	}
}
