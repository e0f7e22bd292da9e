package outboxpgx_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

// TestQueryModes emits in the query modes that users choose behind a pooler, through one.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		for _, name := range []string{pgstream.LayoutName, "packfinderz", "doorito", "modkit"} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				emitInMode(t, mode, name)
			})
		}
	}
}

func emitInMode(t *testing.T, mode, name string) {
	t.Helper()
	direct := pgtest.URL(t)
	pool := pgtest.Connect(t, direct)
	var target outbox.Target = pgstream.Stream{}
	table := "outbox_stream"
	files, err := pgstream.Migrations(pgstream.Shape{})
	if shipped, ok := shipped.Find(name); ok {
		target, table = shipped.Layout, shipped.Layout.Table
		files, err = shipped.Migrations(shipped.Layout)
	}
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	emitter, err := outboxpgx.New(target, outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	through, err := url.Parse(pgbouncer.Start(t, direct, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: 2}))
	if err != nil {
		t.Fatal(err)
	}
	through.RawQuery += "&default_query_exec_mode=" + mode
	event := func() outbox.Event {
		event := layouttest.Event(name)
		event.ID = uuid.New()
		if name == pgstream.LayoutName {
			event.Key, event.TenantID = "k", uuid.New()
			event.DedupeKey = event.TenantID.String() + "/" + event.ID.String()
			event.Headers, event.ContentType = map[string]string{"a": `"\'`}, "application/json"
			event.NotBefore, event.MaxAttempts = time.Now().Add(time.Hour), 3
			event.AggregateType, event.AggregateID = "order", "1"
		}
		return event
	}
	first := event()
	for range 2 { // the second time it is there already
		err := emitter.InTx(t.Context(), pgtest.Connect(t, through.String()), func(tx pgx.Tx) error {
			if _, err := emitter.Emit(t.Context(), tx, first); err != nil {
				return err
			}
			_, err := emitter.EmitMany(t.Context(), tx, []outbox.Event{event(), event(), first})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&rows); err != nil || rows != 5 {
		t.Errorf("%d events, want 5: %v", rows, err)
	}
}
