package pgstream_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstream"
)

// harness is a stream on one fresh database.
type harness struct {
	pool *pgxpool.Pool
	url  string
	// through is how stores are connected; nil for pool.
	through *pgxpool.Pool

	mu     sync.Mutex
	stores []*pgstream.Store
}

func newHarness(t *testing.T, shape pgstream.Shape) *harness {
	t.Helper()
	return newHarnessOn(t, pgtest.URL(t), shape)
}

// newHarnessOn makes a stream in a database of a server.
func newHarnessOn(t *testing.T, url string, shape pgstream.Shape) *harness {
	t.Helper()
	h := &harness{url: url}
	h.pool = pgtest.Connect(t, h.url)
	files, err := pgstream.Migrations(shape)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, h.pool, "", files)
	return h
}

func (h *harness) Open(t *testing.T, options storetest.Options) outbox.Store {
	t.Helper()
	return h.open(t, pgstream.Config{Lease: options.Lease, MaxAttempts: options.MaxAttempts, WorkerID: options.WorkerID})
}

func (h *harness) open(t *testing.T, config pgstream.Config) *pgstream.Store {
	t.Helper()
	pool := h.pool
	if h.through != nil {
		pool = h.through
	}
	store, err := pgstream.Open(t.Context(), pool, pgstream.Stream{}, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stores = append(h.stores, store)
	return store
}

// insertSQL is what a producer without a library would write. $1 ids, $2 keys.
const insertSQL = `
INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
SELECT outbox_shard(key, id), id, 'orders', 'made', key, '{}'
FROM unnest($1::uuid[], $2::text[]) AS new(id, key)`

// emit writes one event per key, in order, in a transaction; "" is no key.
func emit(t *testing.T, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, keys ...string) []uuid.UUID {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	ids := insert(t, tx, keys...)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ids
}

// insert writes one event per key in an open transaction.
func insert(t *testing.T, tx pgx.Tx, keys ...string) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, len(keys))
	plain := make([][16]byte, len(keys))
	nullable := make([]*string, len(keys))
	for i := range keys {
		ids[i] = uuid.New()
		plain[i] = ids[i]
		if keys[i] != "" {
			nullable[i] = &keys[i]
		}
	}
	if _, err := tx.Exec(t.Context(), insertSQL, plain, nullable); err != nil {
		t.Fatal(err)
	}
	return ids
}

func (h *harness) Emit(t *testing.T, n int) []uuid.UUID {
	t.Helper()
	return emit(t, h.pool, make([]string, n)...)
}

// EmitLate emits in a transaction that begins before meanwhile and commits after it.
func (h *harness) EmitLate(t *testing.T, meanwhile func()) uuid.UUID {
	t.Helper()
	tx, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	ids := insert(t, tx, "")
	meanwhile()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// State translates what the tables say into the suite's words.
func (h *harness) State(t *testing.T, id uuid.UUID) (state storetest.State) {
	t.Helper()
	var parked, lastError, reason string
	var due float64
	err := h.pool.QueryRow(t.Context(), `
		SELECT state, attempts, coalesce(last_error, ''), coalesce(reason, ''),
		  coalesce(extract(epoch FROM next_attempt_at - now()), 0)::float8
		FROM outbox_parked WHERE id = $1`, id).Scan(&parked, &state.Attempts, &lastError, &reason, &due)
	if err == nil {
		state.Status, state.LastError, state.Reason = storetest.Pending, lastError, reason
		state.DueIn = time.Duration(due * float64(time.Second))
		if parked == "dead" {
			state.Status = storetest.Dead
		}
		return state
	}
	var passed bool
	err = h.pool.QueryRow(t.Context(), `
		SELECT pg_visible_in_snapshot(e.xid, c.s1) OR coalesce(e.seq <= c.pos AND pg_visible_in_snapshot(e.xid, c.s2), false)
		FROM outbox_stream e JOIN outbox_shards c ON c.shard = e.shard AND c.subscription = 'default'
		WHERE e.id = $1`, id).Scan(&passed)
	if err != nil {
		return state
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	state.Status = storetest.Pending
	if passed {
		state.Status = storetest.Delivered
		return state
	}
	for _, store := range h.stores {
		if store.IsOut(id) {
			state.Status = storetest.Held
		}
	}
	return state
}

// Expire ends every lease, and Age makes everything older: the stores notice as they would
// when time passes. A store that still read ahead would renew its leases.
func (h *harness) Expire(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	for _, store := range h.stores {
		store.AwaitReadAhead()
	}
	h.mu.Unlock()
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET locked_until = locked_until - interval '1 hour'`)
	pgtest.Exec(t, h.pool, `UPDATE outbox_relays SET alive_until = alive_until - interval '1 hour'`)
	h.passTime()
}

func (h *harness) Age(t *testing.T, by time.Duration) {
	t.Helper()
	pgtest.Exec(t, h.pool, `UPDATE outbox_stream SET created_at = created_at - make_interval(secs => $1)`, by.Seconds())
	pgtest.Exec(t, h.pool, `UPDATE outbox_parked SET created_at = created_at - make_interval(secs => $1),
		next_attempt_at = next_attempt_at - make_interval(secs => $1)`, by.Seconds())
	h.passTime()
}

func (h *harness) passTime() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, store := range h.stores {
		store.PassTime()
	}
}

func (h *harness) Retry(t *testing.T, store outbox.Store, ids ...uuid.UUID) []uuid.UUID {
	t.Helper()
	stream, ok := store.(*pgstream.Store)
	if !ok {
		t.Fatalf("%T is not a pgstream.Store", store)
	}
	retried, err := stream.Retry(t.Context(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	return retried
}
