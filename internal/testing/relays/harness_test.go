package relays_test

import (
	"context"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// patience is how long a test waits for what should happen soon.
const patience = time.Minute

// stream is the store that is no table of somebody's own.
const stream = pgstream.LayoutName

// bed is a relay between a real database and a broker in memory.
type bed struct {
	*testing.T
	name    string         // of the layout, or stream
	layout  layouts.Layout // zero for the stream
	url     string
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	broker  *outboxtest.Broker
	logs    *logtest.Log
}

func newBed(t *testing.T, layout string) *bed {
	t.Helper()
	return newBedOn(t, layout, pgtest.URL(t))
}

func newBedOn(t *testing.T, name, url string) *bed {
	t.Helper()
	b := &bed{T: t, name: name, url: url, broker: &outboxtest.Broker{}, logs: &logtest.Log{}}
	b.pool = b.connect(4)
	if name == stream {
		files, err := pgstream.Migrations(pgstream.Shape{})
		b.migrate(files, err)
	} else {
		shipped, ok := shipped.Find(name)
		if !ok {
			t.Fatalf("there is no layout %s", name)
		}
		b.layout = shipped.Layout
		b.migrate(shipped.Migrations(b.layout))
	}
	b.emitter = b.newEmitter(outbox.EmitConfig{})
	return b
}

func (b *bed) migrate(files fs.FS, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	pgtest.Migrate(b.T, b.pool, "", files)
}

func (b *bed) newEmitter(config outbox.EmitConfig) *outboxpgx.Emitter {
	b.Helper()
	var target outbox.Target = b.layout
	if b.name == stream {
		target = pgstream.Stream{}
	}
	emitter, err := outboxpgx.New(target, config)
	if err != nil {
		b.Fatal(err)
	}
	return emitter
}

func (b *bed) connect(conns int32) *pgxpool.Pool {
	b.Helper()
	config, err := pgxpool.ParseConfig(b.url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}

// event is a valid event of the layout.
func (b *bed) event() outbox.Event { return layouttest.Event(b.name) }

func (b *bed) emit(n int) []uuid.UUID {
	b.Helper()
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = b.event()
	}
	return b.emitEvents(events...)
}

func (b *bed) emitEvents(events ...outbox.Event) []uuid.UUID {
	b.Helper()
	list := make([]uuid.UUID, len(events))
	err := b.emitter.InTx(b.Context(), b.pool, func(tx pgx.Tx) error {
		emitted, err := b.emitter.EmitMany(b.Context(), tx, events)
		for i := range emitted {
			list[i] = emitted[i].ID
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return list
}

// config is a relay's, quick enough for tests.
func (b *bed) config(conns int32, storeConfig pgstore.Config) outbox.RelayConfig {
	b.Helper()
	return outbox.RelayConfig{
		Store: b.store(conns, storeConfig), Publisher: b.broker, Poll: 20 * time.Millisecond,
		Retry:  outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		Logger: slog.New(slog.NewTextHandler(b.logs, nil)),
	}
}

func (b *bed) store(conns int32, config pgstore.Config) outbox.Store {
	b.Helper()
	pool := b.connect(conns)
	if b.name == stream {
		store, err := pgstream.Open(b.Context(), pool, pgstream.Stream{}, pgstream.Config{Lease: config.Lease, MaxAttempts: config.MaxAttempts})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(store.Close)
		return store
	}
	store, err := pgstore.New(pool, b.layout, config)
	if err != nil {
		b.Fatal(err)
	}
	return store
}

func (b *bed) relay(config outbox.RelayConfig) *outbox.Relay {
	b.Helper()
	relay, err := outbox.NewRelay(config)
	if err != nil {
		b.Fatal(err)
	}
	return relay
}

// start runs a relay until the end of the test.
func (b *bed) start(config outbox.RelayConfig) *outbox.Relay {
	b.Helper()
	relay := b.relay(config)
	if err := relay.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { outboxtest.Stop(b, relay) })
	return relay
}

func (b *bed) drain(config outbox.RelayConfig) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if err := b.relay(config).Drain(ctx); err != nil {
		b.Fatalf("%v; the log: %s", err, b.logs.Text())
	}
}

// waitReceived waits until n events have arrived, however often each of them.
func (b *bed) waitReceived(n int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	events, seen := map[uuid.UUID]bool{}, 0
	err := b.broker.Wait(ctx, func(received []outbox.Message) bool {
		for ; seen < len(received); seen++ {
			events[received[seen].ID] = true
		}
		return len(events) >= n
	})
	if err != nil {
		b.Fatalf("%d events arrived, want %d; the log: %s", len(events), n, b.logs.Text())
	}
}

// waitSQL waits until a query says true.
func (b *bed) waitSQL(sql string, args ...any) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	err := await.Poll(ctx, func() (ok bool) {
		if err := b.pool.QueryRow(ctx, sql, args...).Scan(&ok); err != nil {
			b.Fatalf("%s %v: %v; the log: %s", sql, args, err, b.logs.Text())
		}
		return ok
	})
	if err != nil {
		b.Fatalf("waited in vain for %s %v; the log: %s", sql, args, b.logs.Text())
	}
}

// wantSQL fails unless a query says true now. It is for what a relay that has ended left behind.
func (b *bed) wantSQL(sql string, args ...any) {
	b.Helper()
	var ok bool
	if err := b.pool.QueryRow(b.Context(), sql, args...).Scan(&ok); err != nil || !ok {
		b.Fatalf("it does not hold (%v) that %s %v; the log: %s", err, sql, args, b.logs.Text())
	}
}

// wantOnce fails unless every event arrived exactly once.
func (b *bed) wantOnce(ids []uuid.UUID) {
	b.Helper()
	for _, id := range ids {
		if n := b.broker.Count(id); n != 1 {
			b.Fatalf("event %s arrived %d times, want once", id, n)
		}
	}
}
