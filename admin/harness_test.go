package admin_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// logger writes what went wrong to the test's output.
func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

// shop is an outbox with an audit log, as the console sees it and as others do.
type shop struct {
	t     *testing.T
	pool  *pgxpool.Pool
	emits outbox.Target
	*ops.Outbox
}

// newShop is one with a queue table.
func newShop(t *testing.T) *shop {
	t.Helper()
	pool := pgtest.Pool(t)
	migrate(t, pool, func() (fs.FS, error) { return modkit.Migrations(modkit.Layout()) })
	migrate(t, pool, audit.Migrations)
	events, err := ops.Table(pool, modkit.Layout())
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, pool: pool, emits: modkit.Layout(), Outbox: events}
}

// newStream is one with a stream, whose events have keys and headers.
func newStream(t *testing.T) *shop {
	t.Helper()
	pool := pgtest.Pool(t)
	migrate(t, pool, func() (fs.FS, error) { return pgstream.Migrations(pgstream.Shape{}) })
	migrate(t, pool, audit.Migrations)
	events, err := ops.Stream(pool, pgstream.Stream{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, pool: pool, emits: pgstream.Stream{}, Outbox: events}
}

// migrate makes some tables.
func migrate(t *testing.T, pool *pgxpool.Pool, migrations func() (fs.FS, error)) {
	t.Helper()
	files, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
}

// newTable is an empty one.
func newTable(t *testing.T) *ops.Outbox {
	t.Helper()
	return newShop(t).Outbox
}

// emit commits some events.
func (s *shop) emit(events ...outbox.Event) {
	s.t.Helper()
	emitter, err := outboxpgx.New(s.emits, outbox.EmitConfig{})
	if err != nil {
		s.t.Fatal(err)
	}
	err = emitter.InTx(s.t.Context(), s.pool, func(tx pgx.Tx) error {
		_, err := emitter.EmitMany(s.t.Context(), tx, events)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// kill makes dead letters of events, for a reason.
func (s *shop) kill(why string, events ...outbox.Event) {
	s.t.Helper()
	s.emit(events...)
	var broker outboxtest.Broker
	broker.FailWith(func(outbox.Message) error { return outbox.Terminal(errors.New(why)) })
	s.drain(&broker)
}

// drain delivers what is there to a publisher.
func (s *shop) drain(to outbox.Publisher) {
	s.t.Helper()
	store, err := pgstore.New(s.pool, modkit.Layout(), pgstore.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: to, Logger: logger(s.t)})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := relay.Drain(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}
