package pgstore_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// ours is a layout no team ships: leases without a status, with a dead-letter table.
func ours() layouts.Layout {
	return layouts.Layout{
		Name: "ours", Schema: "app", Table: "Our Events",
		Hold: layouts.HoldLease, Done: layouts.DoneTimestamp, Count: layouts.CountOnClaim,
		Terminal: layouts.TerminalDeadLetter, MaxAttempts: 3,
		Columns: layouts.Columns{
			ID: layouts.Column{Name: "no"}, Type: layouts.Column{Name: "kind", Enum: "kind"},
			Key: layouts.Column{Name: "part"}, Headers: layouts.Column{Name: "headers"},
			ContentType: layouts.Column{Name: "media"}, Payload: layouts.Column{Name: "body", Type: "bytea"},
			Attempts: layouts.Column{Name: "tries"}, CreatedAt: layouts.Column{Name: "made"},
			NextAttemptAt: layouts.Column{Name: "due"}, LastError: layouts.Column{Name: "trouble"},
			DeliveredAt: layouts.Column{Name: "sent"}, LockedBy: layouts.Column{Name: "owner", Type: "text"},
			LockedUntil: layouts.Column{Name: "lease"},
		},
		DeadLetter: &layouts.DeadLetter{Table: "letters", Columns: layouts.DeadLetterColumns{
			ID: layouts.Column{Name: "id"}, EventID: layouts.Column{Name: "event"}, Payload: layouts.Column{Name: "body"},
			Reason: layouts.Column{Name: "reason"}, FailedAt: layouts.Column{Name: "failed"}, RetriedAt: layouts.Column{Name: "retried"},
		}},
	}
}

const oursSQL = `
	CREATE SCHEMA app;
	CREATE TYPE app.kind AS ENUM ('made', 'gone');
	CREATE TABLE app."Our Events" (
		no uuid PRIMARY KEY, kind app.kind NOT NULL, part text, headers jsonb, media text, body bytea NOT NULL,
		tries int NOT NULL, due timestamptz, trouble text, made timestamptz NOT NULL, sent timestamptz, owner text, lease timestamptz
	);
	CREATE INDEX ON app."Our Events" (due, no) WHERE sent IS NULL AND lease IS NULL;
	CREATE INDEX ON app."Our Events" (lease, no) WHERE sent IS NULL AND lease IS NOT NULL;
	CREATE TABLE app.letters (id uuid, event uuid, body bytea, reason text, failed timestamptz, retried timestamptz);
	CREATE INDEX ON app.letters (event)`

// harness is one layout on one fresh database.
type harness struct {
	layout  layouts.Layout
	url     string
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
}

func newHarness(t *testing.T, name string) *harness {
	t.Helper()
	h := &harness{layout: ours(), url: pgtest.URL(t)}
	h.pool = connect(t, h.url, 0)
	if shipped, ok := shipped.Find(name); ok {
		h.layout = shipped.Layout
		files, err := shipped.Migrations(h.layout)
		if err != nil {
			t.Fatal(err)
		}
		pgtest.Migrate(t, h.pool, "", files)
	} else {
		pgtest.Exec(t, h.pool, oursSQL)
	}
	var err error
	if h.emitter, err = outboxpgx.New(h.layout, outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
	return h
}

func connect(t *testing.T, url string, maxConns int32) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if config.MaxConns = 8; maxConns > 0 {
		config.MaxConns = maxConns
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (h *harness) Open(t *testing.T, options storetest.Options) outbox.Store {
	t.Helper()
	return h.open(t, pgstore.Config{Lease: options.Lease, MaxAttempts: options.MaxAttempts, WorkerID: options.WorkerID})
}

func (h *harness) open(t *testing.T, config pgstore.Config) *pgstore.Store {
	t.Helper()
	return h.openOn(t, connect(t, h.url, 0), config)
}

func (h *harness) openOn(t *testing.T, pool *pgxpool.Pool, config pgstore.Config) *pgstore.Store {
	t.Helper()
	store, err := pgstore.New(pool, h.layout, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store.ScansAreQuick()
}

func (h *harness) event() outbox.Event {
	event := layouttest.Event(h.layout.Name)
	switch h.layout.Name {
	case "doorito":
		event.MaxAttempts = 100 // the row's own maximum must not decide before the store's
	case "ours":
		event.Type, event.Key = "made", "k"
	}
	return event
}

func (h *harness) Emit(t *testing.T, n int) []uuid.UUID {
	t.Helper()
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = h.event()
	}
	return h.emit(t, events...)
}

// emit commits events and returns their ids.
func (h *harness) emit(t *testing.T, events ...outbox.Event) []uuid.UUID {
	t.Helper()
	var emitted []outbox.Emitted
	err := h.emitter.InTx(t.Context(), h.pool, func(tx pgx.Tx) (err error) {
		emitted, err = h.emitter.EmitMany(t.Context(), tx, events)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]uuid.UUID, len(emitted))
	for i := range emitted {
		list[i] = emitted[i].ID
	}
	return list
}

// EmitLate emits in a transaction that begins before meanwhile and commits after it.
func (h *harness) EmitLate(t *testing.T, meanwhile func()) uuid.UUID {
	t.Helper()
	tx, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	emitted, err := h.emitter.Emit(t.Context(), tx, h.event())
	if err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return emitted.ID
}

// HasMaximum is whether a row has a maximum of its own.
func (h *harness) HasMaximum() bool { return !h.layout.Columns.MaxAttempts.IsZero() }

// LowerMaximum changes it.
func (h *harness) LowerMaximum(t *testing.T, to int) {
	t.Helper()
	pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s = %d`, h.table(), h.layout.Columns.MaxAttempts.Name, to))
}

// locks is whether a claim only locks its rows.
func (h *harness) locks() bool {
	return pgstore.Locks(h.layout)
}

func (h *harness) table() string {
	if h.layout.Schema == "" {
		return pgx.Identifier{h.layout.Table}.Sanitize()
	}
	return pgx.Identifier{h.layout.Schema, h.layout.Table}.Sanitize()
}

func (h *harness) letters() string {
	if h.layout.Schema == "" {
		return pgx.Identifier{h.layout.DeadLetter.Table}.Sanitize()
	}
	return pgx.Identifier{h.layout.Schema, h.layout.DeadLetter.Table}.Sanitize()
}

// row is a row as JSON, by column; nil if there is none.
func (h *harness) row(t *testing.T, id uuid.UUID) map[string]any {
	t.Helper()
	var doc []byte
	err := h.pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT (SELECT to_jsonb(t) FROM %s t WHERE %s = $1)`,
		h.table(), pgx.Identifier{h.layout.Columns.ID.Name}.Sanitize()), id).Scan(&doc)
	if err != nil {
		t.Fatal(err)
	}
	if doc == nil {
		return nil
	}
	var row map[string]any
	if err := json.Unmarshal(doc, &row); err != nil {
		t.Fatal(err)
	}
	return row
}

// State translates a row into the suite's words.
func (h *harness) State(t *testing.T, id uuid.UUID) (state storetest.State) {
	t.Helper()
	row := h.row(t, id)
	if row == nil {
		return state
	}
	c := &h.layout.Columns
	attempts, _ := row[c.Attempts.Name].(float64)
	state.Attempts = int(attempts)
	state.LastError, _ = row[c.LastError.Name].(string)
	state.Status = storetest.Pending
	switch {
	case h.layout.Done == layouts.DoneStatus:
		state.Status = map[any]storetest.Status{
			h.layout.States.Pending: storetest.Pending, h.layout.States.Processing: storetest.Held,
			h.layout.States.Delivered: storetest.Delivered, h.layout.States.Dead: storetest.Dead,
		}[row[c.Status.Name]]
	case row[c.DeliveredAt.Name] != nil:
		state.Status = storetest.Delivered
	case h.layout.Hold == layouts.HoldLease && row[c.LockedUntil.Name] != nil:
		state.Status = storetest.Held
	}
	if h.layout.DeadLetter != nil {
		d := &h.layout.DeadLetter.Columns
		var reason string
		err := h.pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT %s::text FROM %s AS d WHERE %s = $1 AND %s`,
			d.Reason.Name, h.letters(), d.EventID.Name, (&tablesql.Layout{Layout: h.layout}).OpenLetter()), id).Scan(&reason)
		if err == nil {
			state.Status, state.Reason = storetest.Dead, reason
		}
	}
	if !c.NextAttemptAt.IsZero() && row[c.NextAttemptAt.Name] != nil {
		var seconds float64
		if err := h.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM $1::text::timestamptz - now())::float8`,
			row[c.NextAttemptAt.Name]).Scan(&seconds); err != nil {
			t.Fatal(err)
		}
		state.DueIn = time.Duration(seconds * float64(time.Second))
		if h.layout.Hold == layouts.HoldDefer && state.Status == storetest.Pending && state.DueIn > 0 && state.Attempts == 0 {
			state.Status = storetest.Held
		}
	}
	return state
}

// Expire moves the end of every lease into the past.
func (h *harness) Expire(t *testing.T) {
	t.Helper()
	column := h.layout.Columns.LockedUntil.Name
	if h.layout.Hold == layouts.HoldDefer {
		column = h.layout.Columns.NextAttemptAt.Name
	}
	pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s = %s - interval '1 hour' WHERE %s > now()`, h.table(), column, column, column))
}

// Age moves every time of every row into the past. The PackFinderz table does not let
// created_at be changed, so its trigger is lifted.
func (h *harness) Age(t *testing.T, by time.Duration) {
	t.Helper()
	c := &h.layout.Columns
	var set string
	for _, column := range []layouts.Column{c.CreatedAt, c.UpdatedAt, c.DeliveredAt, c.NextAttemptAt} {
		if !column.IsZero() {
			set += fmt.Sprintf(", %s = %s - make_interval(secs => %f)", column.Name, column.Name, by.Seconds())
		}
	}
	pgtest.Exec(t, h.pool, fmt.Sprintf(`
		ALTER TABLE %[1]s DISABLE TRIGGER USER;
		UPDATE %[1]s SET %[2]s;
		ALTER TABLE %[1]s ENABLE TRIGGER USER`, h.table(), set[2:]))
}

func (h *harness) Retry(t *testing.T, store outbox.Store, ids ...uuid.UUID) []uuid.UUID {
	t.Helper()
	retrier, ok := store.(*pgstore.Store)
	if !ok {
		t.Fatalf("%T is not a pgstore.Store", store)
	}
	retried, err := retrier.Retry(t.Context(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	return retried
}
