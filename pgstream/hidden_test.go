package pgstream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// asReader is a harness's stream for a role that has all rights, and is not the tables' owner.
func (h *harness) asReader(t *testing.T) *harness {
	t.Helper()
	r := &harness{url: h.url, pool: pgtest.AsRole(t, h.pool)}
	var role string
	if err := r.pool.QueryRow(t.Context(), `SELECT current_user`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, h.pool, `GRANT ALL ON ALL TABLES IN SCHEMA public TO `+role+`; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO `+role)
	return r
}

// TestRowSecurity lets a policy hide events from a relay, before it starts and while it runs. It passes nothing over: what was hidden
// arrives when it can be seen.
func TestRowSecurity(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	r := h.asReader(t)
	store := r.open(t, pgstream.Config{})
	drain(t, store)
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_stream ENABLE ROW LEVEL SECURITY`)
	want := emit(t, h.pool, "a", "b")
	store.PassTime()
	if batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); err == nil {
		t.Errorf("a relay that runs claims %d events of a log that it does not see", len(batch.Messages()))
	}
	_, err := pgstream.Open(t.Context(), r.pool, pgstream.Stream{}, pgstream.Config{})
	if !errors.Is(err, pgstream.ErrHidden) || !strings.Contains(err.Error(), "row-level security hides rows of outbox_stream") {
		t.Errorf("a relay that starts: %v", err)
	}
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_stream DISABLE ROW LEVEL SECURITY`)
	if got := drain(t, store); !slices.Equal(got, want) {
		t.Errorf("in the open again, the relay gets %v, want %v", got, want)
	}
}

// TestDetachedSlot takes the slot that is written to away from the log and puts it back, under a relay.
func TestDetachedSlot(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	drain(t, store)
	want := emit(t, h.pool, "a", "b")
	var slot, bound string
	err := h.pool.QueryRow(t.Context(), `SELECT c.oid::regclass::text, pg_get_expr(c.relpartbound, c.oid)
		FROM outbox_stream AS e JOIN pg_class AS c ON c.oid = e.tableoid LIMIT 1`).Scan(&slot, &bound)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_stream DETACH PARTITION `+slot)
	// The look before an idle window would find nothing, and the one after ten seconds open it.
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET opened_at = now() - interval '1 minute'`)
	if batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); err == nil && len(batch.Messages()) > 0 {
		t.Errorf("claimed %d events", len(batch.Messages()))
	}
	store.PassTime()
	if _, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); !errors.Is(err, pgstream.ErrHidden) {
		t.Errorf("a relay does not notice that a slot is gone: %v", err)
	}
	pgtest.Exec(t, h.pool, `ALTER TABLE outbox_stream ATTACH PARTITION `+slot+` `+bound)
	if got := drain(t, store); !slices.Equal(got, want) {
		t.Errorf("with the slot back, the relay gets %v, want %v", got, want)
	}
}

// TestSchemaIsKept changes the search path under a relay: by the database's settings, and with a temporary table of the log's name.
func TestSchemaIsKept(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	drain(t, store)
	files, err := pgstream.Migrations(pgstream.Shape{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, h.pool, "other", files)
	pgtest.Exec(t, h.pool, `INSERT INTO other.outbox_stream (shard, id, topic, type, payload) VALUES (0, gen_random_uuid(), 'orders', 'theirs', '{}')`)
	want := emit(t, h.pool, "a")
	pgtest.Exec(t, h.pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other, public', current_database()); END $$`)
	pgtest.Exec(t, h.pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	var got []outbox.Message
	for len(got) == 0 {
		store.PassTime()
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err != nil {
			continue // its sessions were ended
		}
		got = append(got, batch.Messages()...)
		batch.Abandon()
	}
	if len(got) != 1 || got[0].ID != want[0] {
		t.Errorf("the relay of public gets %v, want its own event %s", got, want[0])
	}
}

// TestTemporaryTableOfTheSameName hides the log from whoever goes by the search path.
func TestTemporaryTableOfTheSameName(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	want := emit(t, h.pool, "a")
	config := h.pool.Config()
	config.MaxConns = 1
	single, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(single.Close)
	pgtest.Exec(t, single, `CREATE TEMP TABLE outbox_stream (LIKE outbox_stream)`)
	store, err := pgstream.Open(t.Context(), single, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	if got := drain(t, store); !slices.Equal(got, want) {
		t.Errorf("the relay gets %v, want %v", got, want)
	}
}

// TestRenamedSchema renames a stream's schema, and makes another of its name: the functions would write there. Following the advice puts
// them right.
func TestRenamedSchema(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	files, err := pgstream.Migrations(pgstream.Shape{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "shop", files)
	pgtest.Exec(t, pool, `ALTER SCHEMA shop RENAME TO "old shop"`)
	pgtest.Migrate(t, pool, "shop", files)
	stream := pgstream.Stream{Schema: "old shop"}
	var refused *pgstream.SchemaError
	if err := stream.CheckSchema(t.Context(), pool); !errors.As(err, &refused) || !errors.Is(err, pgstream.ErrSchemaIncomplete) {
		t.Fatalf("a stream whose functions write elsewhere: %v", err)
	}
	for _, difference := range refused.Differences {
		_, sql, found := strings.Cut(difference.Mend, "put it right with: ")
		if !found {
			t.Fatalf("there is no advice for %s", difference)
		}
		pgtest.Exec(t, pool, sql)
	}
	if err := stream.CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
	pgtest.Exec(t, pool, `SELECT "old shop".outbox_emit('placed', '{}', 'orders')`)
	var here, there int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM "old shop".outbox_stream), (SELECT count(*) FROM shop.outbox_stream)`).Scan(&here, &there); err != nil {
		t.Fatal(err)
	}
	if here != 1 || there != 0 {
		t.Errorf("%d events are in the stream, and %d in another", here, there)
	}
	if err := (pgstream.Stream{Schema: "shop"}).CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
}
