package pgstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// The functions for producers in any language, held against the Go emitters.

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// emitSQL emits an event with outbox_emit_bytes, every argument by name.
func emitSQL(ctx context.Context, db querier, event outbox.Event) (id uuid.UUID, err error) {
	null := func(empty bool, value any) any {
		if empty {
			return nil
		}
		return value
	}
	err = db.QueryRow(ctx, `SELECT outbox_emit_bytes(p_type => $1, p_payload => $2, p_topic => $3, p_key => $4, p_namespace => $5,
		  p_aggregate_type => $6, p_aggregate_id => $7, p_tenant_id => $8, p_dedupe_key => $9, p_headers => $10,
		  p_content_type => $11, p_not_before => $12, p_max_attempts => $13, p_id => $14)`,
		event.Type, event.Payload, event.Topic, event.Key, event.Namespace, event.AggregateType, event.AggregateID,
		event.TenantID, event.DedupeKey, event.Headers, event.ContentType,
		null(event.NotBefore.IsZero(), event.NotBefore), null(event.MaxAttempts == 0, event.MaxAttempts), event.ID).Scan(&id)
	return id, err
}

// emitGo emits the event with pgx, in a transaction of its own.
func emitGo(t *testing.T, pool *pgxpool.Pool, event outbox.Event) (done outbox.Emitted, err error) {
	t.Helper()
	e := emitter(t, pgstream.Stream{}, outbox.EmitConfig{})
	err = e.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		done, err = e.Emit(t.Context(), tx, event)
		return err
	})
	return done, err
}

// wantSQLRefusal checks that a function refused an argument, in words that say so.
func wantSQLRefusal(t *testing.T, err error, words string) {
	t.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "22023" || !strings.Contains(refused.Message, words) {
		t.Errorf("got %v, want a refusal with %q", err, words)
	}
}

func TestEmitSQLWritesWhatGoWrites(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	tenant := uuid.New()
	full := outbox.Event{
		Namespace: "shop", Topic: "orders", Type: "order_created", Key: "customer-7", AggregateType: "order", AggregateID: "42",
		TenantID: tenant, DedupeKey: tenant.String() + "/1", Payload: []byte{0, 0xff, '{'}, Headers: map[string]string{"trace": `<"\>`},
		ContentType: "application/octet-stream", NotBefore: time.Date(2031, 3, 30, 1, 30, 0, 123000, time.UTC), MaxAttempts: 7,
	}
	plain := layouttest.Event(pgstream.LayoutName)
	aggregate := plain
	aggregate.AggregateType, aggregate.AggregateID = "order", "42"
	half := plain
	half.AggregateType = "order"
	empty := plain
	empty.Payload, empty.Headers = []byte{}, map[string]string{}
	for name, event := range map[string]outbox.Event{
		"every field": full, "plain": plain, "aggregate": aggregate, "half an aggregate": half, "empty": empty,
	} {
		event.ID = uuid.New()
		row := func() (doc map[string]any) {
			t.Helper()
			err := pool.QueryRow(t.Context(), `
				SELECT (SELECT to_jsonb(s) FROM outbox_stream s WHERE id = $1) || (SELECT jsonb_build_object('dedupe', to_jsonb(d)) FROM outbox_dedupe d WHERE id = $1)`,
				event.ID).Scan(&doc)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, own := range []string{"xid", "seq", "slot", "created_at"} {
				if doc[own] == nil {
					t.Errorf("%s: no %s", name, own)
				}
				delete(doc, own)
			}
			delete(doc["dedupe"].(map[string]any), "created_at")
			pgtest.Exec(t, pool, `WITH log AS (DELETE FROM outbox_stream) DELETE FROM outbox_dedupe`)
			return doc
		}
		if _, err := emitGo(t, pool, event); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, _ := json.Marshal(row())
		id, err := emitSQL(t.Context(), pool, event)
		if err != nil || id != event.ID {
			t.Fatalf("%s: got %s, %v", name, id, err)
		}
		if got, _ := json.Marshal(row()); string(got) != string(want) {
			t.Errorf("%s: SQL wrote\n%s, Go\n%s", name, got, want)
		}
	}
}

// TestEmitSQLRefusesWhatGoRefuses tries each limit, and one more.
func TestEmitSQLRefusesWhatGoRefuses(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	tenant := uuid.New()
	name := strings.Repeat("é", outbox.MaxName/2) + "x" // in bytes
	key := strings.Repeat("k", outbox.MaxKey)
	dashless := strings.ReplaceAll(tenant.String(), "-", "")
	for _, c := range []struct {
		words  string // empty where it is taken
		change func(*outbox.Event)
	}{
		{"type is empty", func(ev *outbox.Event) { ev.Type = "" }},
		{"topic is empty", func(ev *outbox.Event) { ev.Topic = "" }},
		{"payload is", func(ev *outbox.Event) { ev.Payload = nil }},
		{"", func(ev *outbox.Event) { ev.Payload = make([]byte, outbox.DefaultMaxPayload) }},
		{"payload has 1048577 bytes; the limit is 1048576", func(ev *outbox.Event) { ev.Payload = make([]byte, outbox.DefaultMaxPayload+1) }},
		{"", func(ev *outbox.Event) {
			ev.Namespace, ev.Topic, ev.Type, ev.ContentType, ev.AggregateType, ev.AggregateID = name, name, name, name, name, name
		}},
		{"namespace has 256 bytes; the limit is 255", func(ev *outbox.Event) { ev.Namespace = name + "x" }},
		{"topic has 256 bytes; the limit is 255", func(ev *outbox.Event) { ev.Topic = name + "x" }},
		{"type has 256 bytes; the limit is 255", func(ev *outbox.Event) { ev.Type = name + "x" }},
		{"content type has 256 bytes; the limit is 255", func(ev *outbox.Event) { ev.ContentType = name + "x" }},
		{"aggregate type has 256 bytes; the limit is 255", func(ev *outbox.Event) { ev.AggregateType = name + "x" }},
		{"aggregate id has 256 bytes; the limit is 255", func(ev *outbox.Event) { ev.AggregateID = name + "x" }},
		{"", func(ev *outbox.Event) { ev.Key, ev.DedupeKey = key, key }},
		{"key has 1025 bytes; the limit is 1024", func(ev *outbox.Event) { ev.Key = key + "x" }},
		{"dedupe key has 1025 bytes; the limit is 1024", func(ev *outbox.Event) { ev.DedupeKey = key + "x" }},
		{"", func(ev *outbox.Event) { ev.Headers = map[string]string{"ab": strings.Repeat("x", outbox.MaxHeaders-2)} }},
		{"headers have 65537 bytes together; the limit is 65536", func(ev *outbox.Event) {
			ev.Headers = map[string]string{"a": "", "b": strings.Repeat("x", outbox.MaxHeaders-1)}
		}},
		{"headers have one with an empty name", func(ev *outbox.Event) { ev.Headers = map[string]string{"": "x"} }},
		{"max attempts is -1", func(ev *outbox.Event) { ev.MaxAttempts = -1 }},
		{"", func(ev *outbox.Event) { ev.NotBefore = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }},
		{"the year must be between 1 and 9999", func(ev *outbox.Event) { ev.NotBefore = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"dedupe key does not begin with the event's tenant id", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, "1" }},
		{"dedupe key does not begin with the event's tenant id", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, tenant.String() }},
		{"dedupe key does not begin with the event's tenant id", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, uuid.NewString()+"/1" }},
		{"dedupe key does not begin with the event's tenant id", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, "{"+tenant.String()+"}/1" }},
		{"", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, tenant.String()+"/1" }},
		{"", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = tenant, strings.ToUpper(dashless)+"/1" }},
		{"", func(ev *outbox.Event) { ev.TenantID, ev.DedupeKey = uuid.Nil, "no tenant" }},
	} {
		event := layouttest.Event(pgstream.LayoutName)
		c.change(&event)
		_, goErr := emitGo(t, pool, event)
		_, sqlErr := emitSQL(t.Context(), pool, event)
		if c.words == "" {
			if goErr != nil || sqlErr != nil {
				t.Errorf("Go said %v, SQL %v; want the event taken", goErr, sqlErr)
			}
			continue
		}
		if !errors.Is(goErr, outbox.ErrInvalidEvent) || !strings.Contains(goErr.Error(), c.words) {
			t.Errorf("Go said %v, want %q", goErr, c.words)
		}
		wantSQLRefusal(t, sqlErr, c.words)
	}
	// What an Event of Go cannot have.
	for call, words := range map[string]string{
		`outbox_emit(NULL, '{}', 'orders')`:                                               "type is empty",
		`outbox_emit('made', '{}', NULL)`:                                                 "topic is empty",
		`outbox_emit('made', NULL, 'orders')`:                                             "payload is NULL",
		`outbox_emit('made', '{}', 'orders', p_max_attempts => 0)`:                        "max attempts is 0",
		`outbox_emit('made', '{}', 'orders', p_not_before => 'infinity')`:                 "not before is infinity",
		`outbox_emit('made', '{}', 'orders', p_headers => '[]')`:                          "headers are of the JSON type array, not an object",
		`outbox_emit('made', '{}', 'orders', p_headers => 'null')`:                        "headers are of the JSON type null, not an object",
		`outbox_emit('made', '{}', 'orders', p_headers => '{"a": "1", "n": 1, "o": {}}')`: "headers have one that is not a string: n",
		`outbox_emit('made', to_jsonb(repeat('x', 1048575)), 'orders')`:                   "payload has 1048577 bytes",
	} {
		_, err := pool.Exec(t.Context(), `SELECT `+call)
		wantSQLRefusal(t, err, words)
	}
}

func TestEmitSQLDefaults(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	var id uuid.UUID
	if err := pool.QueryRow(t.Context(), `SELECT outbox_emit('order_created', '{"b":  1, "a": 2}', 'orders')`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		t.Errorf("the id %s is no UUIDv7", id)
	}
	if seconds, _ := id.Time().UnixTime(); time.Since(time.Unix(seconds, 0)).Abs() > time.Hour {
		t.Errorf("the id %s was made at %s", id, time.Unix(seconds, 0))
	}
	var payload, contentType string
	err := pool.QueryRow(t.Context(), `SELECT convert_from(payload, 'UTF8'), content_type FROM outbox_stream WHERE id = $1`, id).
		Scan(&payload, &contentType)
	if err != nil || payload != `{"a": 2, "b": 1}` || contentType != "application/json" {
		t.Errorf("got %s of %s, %v", payload, contentType, err)
	}
	var deduped int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox_dedupe`).Scan(&deduped); err != nil || deduped != 0 {
		t.Errorf("%d dedupe rows, %v; want none for an event that can meet no other", deduped, err)
	}
	pgtest.Exec(t, pool, `SELECT outbox_emit_bytes('order_created', '\x', 'orders')`)
	if err := pool.QueryRow(t.Context(), `SELECT content_type IS NULL FROM outbox_stream WHERE payload = ''`).Scan(new(bool)); err != nil {
		t.Error(err)
	}
}

// TestEmitSQLDedupe repeats ids and dedupe keys, in SQL and across the two languages.
func TestEmitSQLDedupe(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	emit := func(event outbox.Event) uuid.UUID {
		t.Helper()
		id, err := emitSQL(t.Context(), pool, event)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	keyed := layouttest.Event(pgstream.LayoutName)
	keyed.DedupeKey = "once"
	first := emit(keyed)
	if again := emit(keyed); again != first {
		t.Errorf("got %s, want that of the first, %s", again, first)
	}
	if done, err := emitGo(t, pool, keyed); err != nil || !done.AlreadyEnqueued || done.ID != first {
		t.Errorf("Go: got %+v, %v, want %s", done, err, first)
	}
	chosen := layouttest.Event(pgstream.LayoutName)
	chosen.ID = uuid.New()
	if done, err := emitGo(t, pool, chosen); err != nil || done.AlreadyEnqueued {
		t.Fatalf("Go: got %+v, %v", done, err)
	}
	if again := emit(chosen); again != chosen.ID {
		t.Errorf("got %s, want %s", again, chosen.ID)
	}
	elsewhere := keyed
	elsewhere.Topic = "billing"
	named := keyed
	named.Namespace = "shop"
	if a, b := emit(elsewhere), emit(named); a == first || b == first {
		t.Error("a key was taken for that of another scope")
	}
	wantEmitted(t, pool, 4)
}

// wantEmitted fails unless both tables have so many rows.
func wantEmitted(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	var log, dedupe int
	err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM outbox_stream), (SELECT count(*) FROM outbox_dedupe)`).Scan(&log, &dedupe)
	if err != nil || log != n || dedupe != n {
		t.Errorf("%d events and %d dedupe rows, %v; want %d", log, dedupe, err, n)
	}
}

// TestEmitSQLRace lets a second transaction run into the first one's uncommitted event.
func TestEmitSQLRace(t *testing.T) {
	t.Parallel()
	for _, commit := range []bool{true, false} {
		pool := emitPool(t, "", pgstream.Shape{})
		event := layouttest.Event(pgstream.LayoutName)
		event.DedupeKey = "race"
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		first, err := emitSQL(t.Context(), tx, event)
		if err != nil {
			t.Fatal(err)
		}
		var second uuid.UUID
		answer := make(chan error, 1)
		go func() {
			var err error
			second, err = emitSQL(t.Context(), pool, event)
			answer <- err
		}()
		pgtest.AwaitBlocked(t, pool, 1)
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err = errors.Join(err, <-answer); err != nil {
			t.Fatal(err)
		}
		if same := first == second; same != commit {
			t.Errorf("first %s, second %s, first committed: %v", first, second, commit)
		}
		wantEmitted(t, pool, 1)
	}
}

// TestEmitSQLSerialize has SQL and Go wait for each other on one key.
func TestEmitSQLSerialize(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	e := emitter(t, pgstream.Stream{}, outbox.EmitConfig{Serialize: true})
	event := layouttest.Event(pgstream.LayoutName)
	event.AggregateType, event.AggregateID = "order", "42"
	viaGo := func(tx pgx.Tx) error {
		_, err := e.Emit(t.Context(), tx, event)
		return err
	}
	viaSQL := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT outbox_emit('order_created', '{}', 'orders', p_aggregate_type => 'order', p_aggregate_id => '42', p_serialize => true)`)
		return err
	}
	for _, pair := range [][2]func(pgx.Tx) error{{viaGo, viaSQL}, {viaSQL, viaGo}, {viaSQL, viaSQL}} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if err := pair[0](tx); err != nil {
			t.Fatal(err)
		}
		var locks int
		err = tx.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 2
			  AND classid = 1869968482 AND objid::bigint = hashtext('order/42') & 4294967295`).Scan(&locks)
		if err != nil || locks != 1 {
			t.Errorf("%d locks, %v; want the one that is documented", locks, err)
		}
		// Events without a key, and those of other keys, wait for nobody.
		pgtest.Exec(t, pool, `SELECT outbox_emit('order_created', '{}', 'orders', p_key => k, p_serialize => true) FROM unnest('{NULL,order/43}'::text[]) k`)
		answer := make(chan error, 1)
		go func() { answer <- pgx.BeginFunc(t.Context(), pool, pair[1]) }()
		pgtest.AwaitBlocked(t, pool, 1)
		if err := errors.Join(tx.Commit(t.Context()), <-answer); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmitSQLRollback(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	event := layouttest.Event(pgstream.LayoutName)
	event.ID = uuid.New()
	if _, err := emitSQL(t.Context(), tx, event); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEmitted(t, pool, 0)
}

// TestEmitSQLHostileSearchPath calls the functions from a session that has tables and
// functions of the same names before those of the stream.
func TestEmitSQLHostileSearchPath(t *testing.T) {
	t.Parallel()
	const schema = `my "schema"; --`
	pool := emitPool(t, schema, pgstream.Shape{})
	quoted := pgx.Identifier{schema}.Sanitize()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(`CREATE SCHEMA evil`)
	for _, table := range []string{"outbox_stream", "outbox_dedupe"} {
		run(`CREATE TABLE evil.` + table + ` (LIKE ` + quoted + `.` + table + `)`)
		run(`CREATE TEMP TABLE ` + table + ` (LIKE ` + quoted + `.` + table + `)`)
	}
	for _, function := range []string{
		"outbox_shard(text, uuid) RETURNS smallint", "outbox_new_id() RETURNS uuid", "outbox_lock_keys(text[]) RETURNS void",
		"octet_length(bytea) RETURNS integer", "hashtext(text) RETURNS integer", "hashtextextended(text, bigint) RETURNS bigint",
		"pg_advisory_xact_lock(integer, integer) RETURNS void", "jsonb_typeof(jsonb) RETURNS text",
	} {
		run(`CREATE FUNCTION evil.` + function + ` LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''fooled''; END'`)
	}
	run(`SET search_path TO evil, pg_temp, pg_catalog`)
	run(`SELECT ` + quoted + `.outbox_emit('made', '{}', 'orders', p_key => 'k', p_dedupe_key => 'd', p_headers => '{"a": "b"}', p_serialize => true)`)
	run(`SELECT ` + quoted + `.outbox_emit_bytes('made', '', 'orders')`)
	e := emitter(t, pgstream.Stream{Schema: schema}, outbox.EmitConfig{Serialize: true})
	event := layouttest.Event(pgstream.LayoutName)
	event.Key, event.DedupeKey = "k", "d"
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		done, err := e.Emit(t.Context(), tx, event)
		if err == nil && !done.AlreadyEnqueued {
			t.Error("the dedupe key of the SQL function was not seen")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{
		quoted + ".outbox_stream": 2, quoted + ".outbox_dedupe": 1,
		"evil.outbox_stream": 0, "evil.outbox_dedupe": 0, "pg_temp.outbox_stream": 0, "pg_temp.outbox_dedupe": 0,
	} {
		var got int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&got); err != nil || got != want {
			t.Errorf("%s has %d rows, %v; want %d", table, got, err, want)
		}
	}
	run(`RESET search_path`)
}

// TestEmitSQLAboveReadCommitted leaves the conflict with what the snapshot does not show to
// PostgreSQL, as Go does.
func TestEmitSQLAboveReadCommitted(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	event := layouttest.Event(pgstream.LayoutName)
	event.DedupeKey = "key"
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM outbox_stream`); err != nil {
			return err
		}
		if _, err := emitSQL(t.Context(), pool, event); err != nil {
			return err
		}
		_, err := emitSQL(t.Context(), tx, event)
		return err
	})
	var conflict *pgconn.PgError
	if !errors.As(err, &conflict) || conflict.Code != "40001" {
		t.Errorf("got %v, want PostgreSQL's 40001", err)
	}
}

// TestEmitSQLPayloads carries what breaks text and JSON byte for byte.
func TestEmitSQLPayloads(t *testing.T) {
	t.Parallel()
	pool := emitPool(t, "", pgstream.Shape{})
	for _, payload := range []string{
		"", "\x00", "{\"a\": \"\x00\"}", "\xff\xfe", `{"a": "\u0000"}`, `{"a": 1e999999}`, `\x00`, "'; --",
		strings.Repeat("[", 90000) + strings.Repeat("]", 90000), fmt.Sprintf(`{"a": %s}`, strings.Repeat("9", 200000)),
	} {
		event := layouttest.Event(pgstream.LayoutName)
		event.Payload = []byte(payload)
		id, err := emitSQL(t.Context(), pool, event)
		if err != nil {
			t.Fatalf("%.40q: %v", payload, err)
		}
		var got []byte
		if err := pool.QueryRow(t.Context(), `SELECT payload FROM outbox_stream WHERE id = $1`, id).Scan(&got); err != nil || string(got) != payload {
			t.Errorf("%.40q came back as %.40q, %v", payload, got, err)
		}
	}
}
