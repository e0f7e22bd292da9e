package browsertest_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shop is a stream that a relay delivers to a broker, and a console on it.
type shop struct {
	t       *testing.T
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	broker  outboxtest.Broker
	// declines makes the broker refuse payments for good.
	declines atomic.Bool
	url      string
}

func newShop(t *testing.T, access admin.Access) *shop {
	t.Helper()
	s := &shop{t: t, pool: pgtest.Pool(t)}
	stream, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, s.pool, "", stream)
	pgtest.Migrate(t, s.pool, "", log)
	s.broker.FailWith(s.judge)
	s.relay()
	s.console(access)
	return s
}

// judge refuses payments while the acquirer declines them, and what says that it is poison.
func (s *shop) judge(message outbox.Message) error {
	switch {
	case message.Type == "payment.captured" && s.declines.Load():
		return outbox.Terminal(fmt.Errorf("the acquirer declined payment of %s: 402 insufficient funds", message.Key))
	case strings.HasPrefix(message.Type, "poison"):
		return outbox.Terminal(errors.New(message.Headers["why"]))
	}
	return nil
}

func (s *shop) relay() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	store, err := pgstream.Open(s.t.Context(), s.pool, pgstream.Stream{}, pgstream.Config{Logger: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(store.Close)
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: &s.broker, Logger: log, Poll: 100 * time.Millisecond, Listen: true})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.emitter, err = outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: "orders", Nudge: relay.Nudge}); err != nil {
		s.t.Fatal(err)
	}
	if err := relay.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { outboxtest.Stop(s.t, relay) })
}

func (s *shop) console(access admin.Access) {
	s.t.Helper()
	events, err := ops.Stream(s.pool, pgstream.Stream{}, pgstream.DefaultSubscription)
	if err != nil {
		s.t.Fatal(err)
	}
	console, err := admin.New(admin.Config{
		Access:   access,
		Logger:   slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
		Outboxes: []admin.Outbox{{Name: "shop", Outbox: events}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := console.Listen("127.0.0.1:0", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := server.Close(); err != nil {
			s.t.Error(err)
		}
		console.Close()
	})
	s.url = server.URL
}

// emit commits some events.
func (s *shop) emit(events ...outbox.Event) {
	s.t.Helper()
	err := s.emitter.InTx(s.t.Context(), s.pool, func(tx pgx.Tx) error {
		_, err := s.emitter.EmitMany(s.t.Context(), tx, events)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// settled waits until the log knows that all events are delivered, which is a little after the broker has them.
func (s *shop) settled() {
	s.t.Helper()
	await.Until(s.t, "every event to be settled", func() bool {
		lag, err := pgstream.Stream{}.Lag(s.t.Context(), s.pool, pgstream.DefaultSubscription)
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range lag.Shards {
			if lag.Shards[i].Events > 0 {
				return false
			}
		}
		return true
	})
}

// received waits until the broker has so many messages of a type.
func (s *shop) received(kind string, n int) {
	s.t.Helper()
	err := s.broker.Wait(s.t.Context(), func(all []outbox.Message) bool {
		got := 0
		for i := range all {
			if all[i].Type == kind {
				got++
			}
		}
		return got >= n
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// order is an event of an order.
func order(kind string, number int) outbox.Event {
	return outbox.Event{
		Type: kind, Topic: "orders", Key: fmt.Sprintf("order-%d", number), Headers: map[string]string{"traceparent": fmt.Sprintf("00-%032x-%016x-01", number, number)},
		Payload: fmt.Appendf(nil, `{"order":%d,"total":{"amount":%d,"currency":"EUR"},"items":[{"sku":"B-%d","quantity":2}],"gift":false,"note":null}`,
			number, 1000+number, number%97),
	}
}
