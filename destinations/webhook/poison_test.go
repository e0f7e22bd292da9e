package webhook_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestUnknownEvent has a receiver that answers one event of a hundred with 404, forever: the others
// arrive, once each, and those are dead after their attempts. TestOutages has one that answers so to
// everything.
func TestUnknownEvent(t *testing.T) {
	t.Parallel()
	const events, each = 1000, 100
	pool := pgtest.Pool(t)
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	unknown, known := make(map[string]bool), make(map[string]int)
	var lock sync.Mutex
	// emit emits events, of which every hundredth is unknown, from the given number on.
	emit := func(from, to int) {
		t.Helper()
		var list []outbox.Event
		lock.Lock()
		for i := from; i < to; i++ {
			id := uuid.New()
			list = append(list, outbox.Event{ID: id, Topic: "orders", Type: "made", Key: fmt.Sprint(i), Payload: []byte(`{}`)})
			if i%each == 7 {
				unknown[id.String()] = true
			} else {
				known[id.String()] = 0
			}
		}
		lock.Unlock()
		err := emitter.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := emitter.EmitMany(t.Context(), tx, list)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	emit(0, events)

	var r *receiver
	r = newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
		lock.Lock()
		no := unknown[request.Header.Get("webhook-id")]
		lock.Unlock()
		if no {
			http.NotFound(w, request)
			return
		}
		r.keep(request)
	})
	log := &logtest.Log{}
	defer func() {
		if t.Failed() {
			t.Log(log.Text())
		}
	}()
	logger := slog.New(slog.NewTextHandler(log, nil))
	store, err := pgstream.Open(t.Context(), pool, pgstream.Stream{}, pgstream.Config{MaxAttempts: 3, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: r.publisher(t, webhook.Config{}), BatchSize: 100, Poll: 20 * time.Millisecond, Logger: logger,
		Retry: outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outboxtest.Stop(t, relay) })
	dead := func() (n int) {
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox_parked
			WHERE state = 'dead' AND attempts = 3 AND last_error LIKE '%404%' AND id = ANY($1)`, slices.Collect(maps.Keys(unknown))).Scan(&n)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	await.Until(t, "the known events to arrive", func() bool { return len(r.deliveries()) == len(known) })
	// Whether the last of the others are at fault shows when more events come.
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	n := events
	await.Until(t, "the unknown events to be dead", func() bool {
		if dead() == len(unknown) {
			return true
		}
		emit(n+each/4, n+each/2) // they are all known
		n += each / 2
		await.Until(t, "the known events to arrive", func() bool { return len(r.deliveries()) == len(known) })
		<-pace.C // not a flood of them
		return false
	})
	outboxtest.Stop(t, relay)

	for _, d := range r.deliveries() {
		known[d.header.Get("webhook-id")]++
	}
	for id, times := range known {
		if times != 1 {
			t.Errorf("event %s arrived %d times", id, times)
		}
	}
}
