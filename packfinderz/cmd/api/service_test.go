package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/consumetest"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// start runs the api on a database and returns its address.
func start(t *testing.T, database string) (address string, running *consumetest.Running) {
	t.Helper()
	address = backendtest.Address(t)
	environment := map[string]string{"DATABASE_URL": database, "PACKFINDERZ_API_LISTEN": address}
	running = backendtest.Start(t, environment, slog.New(slog.DiscardHandler), run)
	backendtest.AwaitStatus(t, address, "/healthz", http.StatusOK)
	return address, running
}

// TestStopFinishesRequests stops the api in the middle of a request: it is answered, and its change is there.
func TestStopFinishesRequests(t *testing.T) {
	t.Parallel()
	url, pool := backendtest.Database(t)
	gate := backendtest.NewGate(t, pool, "stores", "INSERT")
	address, running := start(t, url)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	gate.Close()
	answered := make(chan int, 1)
	go func() {
		answered <- backendtest.Request(t, http.MethodPut, "http://"+address+"/v1/stores/"+uuid.NewString(), `{"name": "Green Leaf"}`)
	}()
	gate.AwaitStanding("")
	running.Cancel()
	backendtest.AwaitStatus(t, address, "/healthz", 0) // it takes no more
	gate.Open()
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("the request under way was answered with %d", status)
	}
	running.Stop()
	if n := backendtest.Count(t, pool, `SELECT count(*) FROM stores`); n != 1 {
		t.Errorf("%d stores, want 1", n)
	}
}

// TestArguments has the api make its tables, and say what it does not know.
func TestArguments(t *testing.T) {
	t.Parallel()
	url, log := pgtest.URL(t), slog.New(slog.DiscardHandler)
	lookup := backendtest.Lookup(map[string]string{"DATABASE_URL": url})
	if err := run(t.Context(), []string{"migrate"}, lookup, log); err != nil {
		t.Fatal(err)
	}
	backendtest.Count(t, pgtest.Connect(t, url), `SELECT count(*) FROM outbox_events, notifications`)
	err := run(t.Context(), []string{"migrat"}, lookup, log)
	if err == nil || !strings.Contains(err.Error(), "migrate") || program.ExitCode(err) != 2 {
		t.Errorf("%v does not say what there is", err)
	}
}

// TestNotReady has no database: the api lives, and says that it is not ready.
func TestNotReady(t *testing.T) {
	t.Parallel()
	address, _ := start(t, "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=2")
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusServiceUnavailable)
}

// TestConfig has the address that Heroku asks for, and values that make no sense.
func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ port, listen, want string }{
		{"", "", "127.0.0.1:8080"}, {"5000", "", ":5000"}, {"5000", "localhost:80", "localhost:80"},
	} {
		got, err := readConfig(backendtest.Lookup(map[string]string{
			"PORT": c.port, "PACKFINDERZ_API_LISTEN": c.listen, "PACKFINDERZ_DATABASE_URL": "postgres:///a",
		}))
		if err != nil || got.listen != c.want {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	_, err := readConfig(backendtest.Lookup(map[string]string{"PACKFINDERZ_API_LISTEN": "8080"}))
	for _, name := range []string{"PACKFINDERZ_DATABASE_URL", "PACKFINDERZ_API_LISTEN"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
