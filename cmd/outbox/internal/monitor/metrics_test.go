package monitor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/monitor"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
	"github.com/packfinderz/outbox/pgstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestDead has events die in all three ways, each of which the metrics count: refused for good,
// failed on the last attempt, and left by a worker that was gone in its last one.
func TestDead(t *testing.T) {
	t.Parallel()
	pool := table(t)
	emitter, err := outboxpgx.New(modkit.Layout(), outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = emitter.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		for _, payload := range []string{`"refused"`, `"failed"`, `"left"`, `"good"`} {
			event := layouttest.Event("modkit")
			event.Payload = []byte(payload)
			if _, err := emitter.Emit(t.Context(), tx, event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, pool, `UPDATE modkit_outbox_events
		SET status = 'processing', attempts = 1, locked_by = gen_random_uuid(), locked_until = now() - interval '1 second'
		WHERE payload = '"left"'`)
	store := open(t, pool, pgstore.Config{MaxAttempts: 1})
	metrics := monitor.New(store)
	module, err := modkit.NewModule(pool, modkit.Config{Namespace: modkit.AllNamespaces, MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := modkit.NewDispatcher(module, modkit.DispatcherConfig{
		Hooks: []any{metrics}, Logger: slog.New(slog.DiscardHandler),
		Otherwise: func(_ context.Context, m modkit.ClaimedMessage) error {
			switch string(m.Payload) {
			case `"refused"`:
				return outbox.Terminal(errors.New("never"))
			case `"failed"`:
				return errors.New("no")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, page(t, metrics, pool, relay),
		"outbox_dead_total 3", "outbox_dead_events 3", "outbox_published_total 1", "outbox_backlog_events 0")
}

// TestLost has a batch of which one was lost: it is counted as that, and not as dead.
func TestLost(t *testing.T) {
	t.Parallel()
	pool := table(t)
	store := open(t, pool, pgstore.Config{})
	metrics := monitor.New(store)
	messages := []outbox.Message{{Event: outbox.Event{ID: uuid.New()}}, {Event: outbox.Event{ID: uuid.New()}}}
	died := outbox.Outcome{Kind: outbox.Died}
	metrics.OnSettle(outbox.BatchReport{Messages: messages, Outcomes: []outbox.Outcome{died, died}, Lost: []uuid.UUID{messages[1].ID}})
	wantLines(t, page(t, metrics, pool, nil), "outbox_dead_total 1", "outbox_lease_lost_total 1")
}

// asked is a publisher that can be pinged.
type asked struct{ outbox.Publisher }

func (asked) Ping(context.Context) error { return nil }

// TestReady is what /readyz answers before the destination has been asked for the first time, and after.
func TestReady(t *testing.T) {
	t.Parallel()
	pool := table(t)
	store := open(t, pool, pgstore.Config{})
	metrics := monitor.New(store)
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: asked{}, Hooks: []any{metrics}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, metrics, pool, relay, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "destination closed since") {
		t.Errorf("before the first ping: %d, %s", status, body)
	}
	if err := relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer outboxtest.Stop(t, relay)
	await.Until(t, "the relay to be ready", func() bool {
		status, _ := get(t, metrics, pool, relay, "/readyz")
		return status == http.StatusOK
	})
}

// TestNoDatabase is what /readyz answers without a database: why, and since when.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	pool := table(t)
	store := open(t, pool, pgstore.Config{})
	metrics := monitor.New(store)
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: asked{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	status, body := get(t, metrics, pool, relay, "/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "the database has not answered since 20") || !strings.Contains(body, "): closed pool") {
		t.Errorf("%d, %s", status, body)
	}
}

// TestBacklog counts events that wait for another attempt, or for their time: they are not delivered.
func TestBacklog(t *testing.T) {
	t.Parallel()
	pool := table(t)
	pgtest.Exec(t, pool, `INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, attempts, next_attempt_at)
		SELECT gen_random_uuid(), 'shop', 'orders', '{}', 'pending', i - 1, now() + (i - 1) * interval '1 hour' FROM generate_series(1, 3) AS i`)
	store := open(t, pool, pgstore.Config{})
	wantLines(t, page(t, monitor.New(store), pool, nil), "outbox_backlog_events 3", "outbox_retrying_events 2")
}

// TestClosedRoutes counts the destination and the events without a topic, neither of which has one, apart.
func TestClosedRoutes(t *testing.T) {
	t.Parallel()
	pool := table(t)
	store := open(t, pool, pgstore.Config{})
	metrics := monitor.New(store)
	for _, status := range []outbox.RouteStatus{{}, {Topicless: true}, {Topic: "orders"}, {Topicless: true, Open: true}} {
		metrics.OnRoute(status)
	}
	wantLines(t, page(t, metrics, pool, nil), "outbox_closed_routes 2")
}

// table is a database with an empty outbox table.
func table(t *testing.T) *pgxpool.Pool {
	t.Helper()
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		t.Fatal(err)
	}
	pool := pgtest.Pool(t)
	pgtest.Migrate(t, pool, "", files)
	return pool
}

// open is a store on such a table.
func open(t *testing.T, pool *pgxpool.Pool, config pgstore.Config) *pgstore.Store {
	t.Helper()
	store, err := pgstore.New(pool, modkit.Layout(), config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("the metrics lack %q:\n%s", line, page)
		}
	}
}

// page is what a Prometheus would read.
func page(t *testing.T, metrics *monitor.Metrics, pool *pgxpool.Pool, relay *outbox.Relay) string {
	t.Helper()
	_, body := get(t, metrics, pool, relay, "/metrics")
	return body
}

// get serves for one request.
func get(t *testing.T, metrics *monitor.Metrics, pool *pgxpool.Pool, relay monitor.Relay, path string) (status int, body string) {
	t.Helper()
	log := &logtest.Log{}
	stop, err := metrics.Serve("127.0.0.1:0", pool, relay, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, address, _ := strings.Cut(log.Line("address="), "address=")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+strings.TrimSpace(address)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
