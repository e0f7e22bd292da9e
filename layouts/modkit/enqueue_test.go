package modkit_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// TestFields checks that messages have only the fields of the contract.
func TestFields(t *testing.T) {
	t.Parallel()
	for value, want := range map[any][]string{
		reflect.TypeFor[modkit.Message]():        {"Namespace", "Topic", "TenantID", "DedupeKey", "Payload"},
		reflect.TypeFor[modkit.ClaimedMessage](): {"ID", "Namespace", "Topic", "TenantID", "DedupeKey", "Payload", "Attempts"},
		reflect.TypeFor[modkit.ClaimCfg]():       {"BatchSize", "LeaseDuration", "MaxAttempts"},
	} {
		var got []string
		for _, field := range reflect.VisibleFields(value.(reflect.Type)) {
			if field.IsExported() {
				got = append(got, field.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v has %v, want %v", value, got, want)
		}
	}
}

// inTx runs work in a transaction of each kind, and commits it or not.
func (b *bed) inTx(kind string, keep bool, work func(tx modkit.Tx, exec func(string) error) error) error {
	b.Helper()
	undo := errors.New("rolled back")
	end := func(err error) error {
		if err == nil && !keep {
			return undo
		}
		return err
	}
	var err error
	switch kind {
	case "pgx":
		err = pgx.BeginFunc(b.Context(), b.pool, func(tx pgx.Tx) error {
			return end(work(tx, func(sql string) error { _, err := tx.Exec(b.Context(), sql); return err }))
		})
	case "database/sql":
		var tx *sql.Tx
		if tx, err = b.sql().BeginTx(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		err = end(work(tx, func(sql string) error { _, err := tx.ExecContext(b.Context(), sql); return err }))
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		} else {
			err = tx.Commit()
		}
	}
	if errors.Is(err, undo) {
		return nil
	}
	return err
}

// sql is the database behind database/sql.
func (b *bed) sql() *sql.DB {
	b.Helper()
	db, err := sql.Open("pgx", b.url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func (b *bed) count(query string) (n int) {
	b.Helper()
	if err := b.pool.QueryRow(b.Context(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// TestEnqueue writes messages with a change of the caller's, in a transaction of each kind: both exist or neither
// does, a key exists once, and a row starts as the contract says.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pgx", "database/sql"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			if _, err := b.pool.Exec(t.Context(), `CREATE TABLE turns (id int)`); err != nil {
				t.Fatal(err)
			}
			tenant := uuid.New()
			message := modkit.Message{
				Namespace: "mini-chat", Topic: "usage", TenantID: tenant, DedupeKey: tenant.String() + "/turn/request", Payload: []byte(`{"tokens": 17}`),
			}
			plain := modkit.Message{Namespace: "mini-chat", Topic: "usage", Payload: []byte(`{}`)}
			var first []modkit.Enqueued
			for _, keep := range []bool{false, true} {
				err := b.inTx(kind, keep, func(tx modkit.Tx, exec func(string) error) (err error) {
					if err := exec(`INSERT INTO turns VALUES (1)`); err != nil {
						return err
					}
					first, err = modkit.Enqueue(t.Context(), tx, message, plain, message)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				want := 0
				if keep {
					want = 1
				}
				if turns, events := b.count(`SELECT count(*) FROM turns`), b.count(`SELECT count(*) FROM modkit_outbox_events`); turns != want || events != 2*want {
					t.Errorf("kept: %t; %d turns and %d events", keep, turns, events)
				}
			}
			if len(first) != 3 || first[0].AlreadyEnqueued || first[1].AlreadyEnqueued || !first[2].AlreadyEnqueued ||
				first[2].ID != first[0].ID || first[1].ID == first[0].ID {
				t.Fatalf("enqueued %+v", first)
			}
			b.wantNew(first[0].ID, message)
			b.wantNew(first[1].ID, plain)
			err := b.inTx(kind, true, func(tx modkit.Tx, _ func(string) error) error {
				again, err := modkit.Enqueue(t.Context(), tx, message)
				if err == nil && (len(again) != 1 || !again[0].AlreadyEnqueued || again[0].ID != first[0].ID) {
					t.Errorf("enqueued again: %+v", again)
				}
				return err
			})
			if n := b.count(`SELECT count(*) FROM modkit_outbox_events`); err != nil || n != 2 {
				t.Errorf("%d events: %v", n, err)
			}
		})
	}
}

// wantNew fails unless a row is as at its start.
func (b *bed) wantNew(id uuid.UUID, m modkit.Message) {
	b.Helper()
	var as bool
	err := b.pool.QueryRow(b.Context(), `SELECT namespace = $2 AND topic = $3 AND tenant_id IS NOT DISTINCT FROM nullif($4, '00000000-0000-0000-0000-000000000000'::uuid)
		AND dedupe_key IS NOT DISTINCT FROM nullif($5, '') AND payload = $6 AND status = 'pending' AND attempts = 0 AND next_attempt_at = created_at
		AND updated_at = created_at AND locked_by IS NULL AND locked_until IS NULL AND last_error IS NULL
		FROM modkit_outbox_events WHERE id = $1`, id, m.Namespace, m.Topic, m.TenantID, m.DedupeKey, m.Payload).Scan(&as)
	if err != nil || !as {
		b.Errorf("event %s does not begin as it should: %v", id, err)
	}
}

// TestEnqueueRefuses checks that messages are refused before anything is written, and that the transaction stays
// usable.
func TestEnqueueRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	tenant := uuid.New()
	good := modkit.Message{Namespace: "mini-chat", Topic: "usage", Payload: []byte(`{}`)}
	with := func(change func(*modkit.Message)) modkit.Message {
		m := good
		change(&m)
		return m
	}
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for words, m := range map[string]modkit.Message{
		"namespace is empty":                with(func(m *modkit.Message) { m.Namespace = "" }),
		"namespace stands for all":          with(func(m *modkit.Message) { m.Namespace = modkit.AllNamespaces }),
		"topic is empty":                    with(func(m *modkit.Message) { m.Topic = "" }),
		"payload is nil":                    with(func(m *modkit.Message) { m.Payload = nil }),
		"payload is not":                    with(func(m *modkit.Message) { m.Payload = []byte(`{`) }),
		"does not begin with the event's t": with(func(m *modkit.Message) { m.TenantID, m.DedupeKey = tenant, uuid.NewString()+"/turn" }),
		"does not begin with the event's":   with(func(m *modkit.Message) { m.TenantID, m.DedupeKey = tenant, tenant.String() }),
	} {
		_, err := modkit.Enqueue(t.Context(), tx, good, m)
		var refused *outbox.EventError
		if !errors.As(err, &refused) || refused.Index != 1 || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	for _, key := range []string{tenant.String(), strings.ReplaceAll(tenant.String(), "-", ""), strings.ToUpper(tenant.String())} {
		m := with(func(m *modkit.Message) { m.TenantID, m.DedupeKey = tenant, key+"/turn" })
		if _, err := modkit.Enqueue(t.Context(), tx, m); err != nil {
			t.Errorf("key %s: %v", key, err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM modkit_outbox_events`); n != 3 {
		t.Errorf("%d events, want those with a good key", n)
	}
	pgtest.Exec(t, b.pool, `DROP TABLE modkit_outbox_events`)
	for _, driver := range []string{"pgx", "database/sql"} {
		err := b.inTx(driver, true, func(tx modkit.Tx, _ func(string) error) error {
			_, err := modkit.Enqueue(t.Context(), tx, good)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "make the table with outbox migrate up --layout modkit") {
			t.Errorf("%s, without the table: %v", driver, err)
		}
	}
	module := b.module(modkit.Config{})
	_, claimed := module.ClaimBatch(t.Context(), modkit.ClaimCfg{BatchSize: 1})
	_, counted := module.Stats(t.Context())
	_, retried := module.Retry(t.Context(), uuid.New())
	_, swept := module.Sweep(t.Context())
	_, purged := module.Purge(t.Context(), outbox.Purge{Retention: time.Hour})
	for i, err := range []error{claimed, counted, retried, swept, purged} {
		if err == nil || !strings.Contains(err.Error(), "outbox migrate up --layout modkit") {
			t.Errorf("call %d, without the table: %v", i, err)
		}
	}
	for _, none := range []modkit.Tx{nil, b.pool, b.sql(), "tx", context.Background()} {
		if _, err := modkit.Enqueue(t.Context(), none, good); !errors.Is(err, modkit.ErrNoTransaction) {
			t.Errorf("%T: %v", none, err)
		}
	}
}
