package pgstream_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

// emitPool is a database with a stream in a schema, or in the default one.
func emitPool(t *testing.T, schema string, shape pgstream.Shape) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	files, err := pgstream.Migrations(shape)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, schema, files)
	return pool
}

// emitter emits to a stream with pgx.
func emitter(t *testing.T, stream pgstream.Stream, config outbox.EmitConfig) *outboxpgx.Emitter {
	t.Helper()
	emitter, err := outboxpgx.New(stream, config)
	if err != nil {
		t.Fatal(err)
	}
	return emitter
}

// TestEmitShards emits many keys, from Go and from SQL. A shard that is computed in two
// ways breaks the order of its keys; one outside the range (half of the hashes are negative)
// is never read.
func TestEmitShards(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 8, 256} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			t.Parallel()
			pool := emitPool(t, "", pgstream.Shape{Shards: shards})
			const n = 2000
			events := make([]outbox.Event, n)
			for i := range events {
				events[i] = layouttest.Event(pgstream.LayoutName)
				if i%2 == 0 {
					events[i].Key = fmt.Sprintf("Schlüssel %d", i)
				}
			}
			e := emitter(t, pgstream.Stream{}, outbox.EmitConfig{})
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if _, err := e.EmitMany(t.Context(), tx, events[:n/2]); err != nil {
					return err
				}
				for _, event := range events[n/2 : n/2+100] {
					if _, err := e.Emit(t.Context(), tx, event); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// Each event once more by SQL, by its key or its id.
			pgtest.Exec(t, pool, `SELECT outbox_emit(type, '{}', topic, p_key => coalesce(key, id::text), p_namespace => 'sql') FROM outbox_stream`)
			var rows, negative, wrong, differ, used int
			err = pool.QueryRow(t.Context(), `
				SELECT count(*), count(*) FILTER (WHERE hash < 0), count(*) FILTER (WHERE shard <> (hash + 9223372036854775808) % $1),
				  count(DISTINCT shard)
				FROM (SELECT shard, hashtextextended(coalesce(key, id::text), 0)::numeric AS hash FROM outbox_stream) AS hashes`, shards).
				Scan(&rows, &negative, &wrong, &used)
			if err != nil {
				t.Fatal(err)
			}
			err = pool.QueryRow(t.Context(), `
				SELECT count(*) FROM outbox_stream a JOIN outbox_stream b ON b.key = coalesce(a.key, a.id::text)
				WHERE b.shard <> a.shard`).Scan(&differ)
			if err != nil {
				t.Fatal(err)
			}
			if rows != 2*(n/2+100) || negative == 0 || wrong > 0 || differ > 0 || used < shards*9/10 {
				t.Errorf("%d events: %d with a negative hash, %d in a wrong shard, %d in two shards, %d shards used",
					rows, negative, wrong, differ, used)
			}
		})
	}
}

// TestEmitLeavesDefaults reads what only the table may write.
func TestEmitLeavesDefaults(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	e := emitter(t, pgstream.Stream{}, outbox.EmitConfig{})
	event := layouttest.Event(pgstream.LayoutName)
	keyed := event
	keyed.DedupeKey = "key"
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, events := range [][]outbox.Event{{event}, {keyed, event}} {
			if _, err := e.EmitMany(t.Context(), tx, events); err != nil {
				return err
			}
		}
		keyed.DedupeKey = "another"
		for _, event := range []outbox.Event{event, keyed} {
			if _, err := e.Emit(t.Context(), tx, event); err != nil {
				return err
			}
		}
		var rows, right int
		err := tx.QueryRow(t.Context(), `
			SELECT count(*), count(*) FILTER (WHERE xid = pg_current_xact_id() AND created_at = now()
			  AND slot = floor(extract(epoch FROM now()) / 86400)::bigint % 8 AND seq BETWEEN 1 AND 5)
			FROM outbox_stream`).Scan(&rows, &right)
		if err == nil && (rows != 5 || right != 5) {
			t.Errorf("%d rows, %d of them right; want 5", rows, right)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEmitSchema emits to two streams of one database, neither on the search path.
func TestEmitSchema(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "one", pgstream.Shape{})
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "two", files)
	event := layouttest.Event(pgstream.LayoutName)
	event.ID, event.Key = uuid.New(), "key"
	for _, schema := range []string{"one", "two"} {
		e := emitter(t, pgstream.Stream{Schema: schema}, outbox.EmitConfig{Serialize: true})
		for _, already := range []bool{false, true} {
			err := e.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				done, err := e.Emit(t.Context(), tx, event)
				if err == nil && done.AlreadyEnqueued != already {
					t.Errorf("%s: already enqueued is %v, want %v", schema, done.AlreadyEnqueued, already)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := outboxpgx.New(pgstream.Stream{Schema: "a\x00b"}, outbox.EmitConfig{}); err == nil {
		t.Error("a schema name with a NUL byte was taken")
	}
}
