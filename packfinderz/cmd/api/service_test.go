package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

func TestMain(m *testing.M) { testdb.Main(m) }

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
	url, log := testdb.URL(t), slog.New(slog.DiscardHandler)
	lookup := backendtest.Lookup(map[string]string{"DATABASE_URL": url})
	if err := run(t.Context(), []string{"migrate"}, lookup, log); err != nil {
		t.Fatal(err)
	}
	backendtest.Count(t, testdb.Connect(t, url), `SELECT count(*) FROM outbox_events, notifications`)
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

// TestNotReadyWithoutTables loses a table: readiness has the words of PostgreSQL.
func TestNotReadyWithoutTables(t *testing.T) {
	t.Parallel()
	url, pool := backendtest.Database(t)
	address, _ := start(t, url)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	testdb.Exec(t, pool, `ALTER TABLE licenses RENAME TO away`)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusServiceUnavailable)
	if why := backendtest.Answer(t, "http://"+address+"/readyz"); !strings.Contains(why, `PostgreSQL: ERROR: relation "licenses" does not exist`) {
		t.Errorf("the answer is %q", why)
	}
}

// TestConfig has the address that Heroku asks for, and values that make no sense.
func TestConfig(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 32)
	for _, c := range []struct{ port, listen, want string }{
		{"", "", "127.0.0.1:8080"}, {"5000", "", ":5000"}, {"5000", "localhost:80", "localhost:80"},
	} {
		got, err := readConfig(backendtest.Lookup(map[string]string{
			"PORT": c.port, "PACKFINDERZ_API_LISTEN": c.listen, "PACKFINDERZ_DATABASE_URL": "postgres:///a",
			"PACKFINDERZ_API_GATEWAY_SECRET": secret,
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

// TestNoOpenDoor: beyond the loopback the api does not start without a secret, nor with one that can be guessed.
func TestNoOpenDoor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		port, listen, secret string
		starts               bool
	}{
		{listen: "127.0.0.1:8080", starts: true},
		{listen: "localhost:8080", starts: true},
		{listen: "[::1]:8080", starts: true},
		{listen: ":8080"},
		{listen: "0.0.0.0:8080"},
		{listen: "10.0.0.1:8080"},
		{listen: "localhost.example.com:8080"},
		{port: "5000"},
		{port: "5000", secret: "short"},
		{listen: "127.0.0.1:8080", secret: "short"},
		{port: "5000", secret: strings.Repeat("s", 32), starts: true},
	} {
		_, err := readConfig(backendtest.Lookup(map[string]string{
			"PORT": c.port, "PACKFINDERZ_API_LISTEN": c.listen, "PACKFINDERZ_API_GATEWAY_SECRET": c.secret,
			"PACKFINDERZ_DATABASE_URL": "postgres:///a",
		}))
		if (err == nil) != c.starts || (err != nil && (program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "PACKFINDERZ_API_GATEWAY_SECRET"))) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestOnlyTheGateway has requests with and without the secret; whether the api lives may be asked by anybody.
func TestOnlyTheGateway(t *testing.T) {
	t.Parallel()
	url, _ := backendtest.Database(t)
	address, secret := backendtest.Address(t), strings.Repeat("s", 32)
	backendtest.Start(t, map[string]string{
		"DATABASE_URL": url, "PACKFINDERZ_API_LISTEN": address, "PACKFINDERZ_API_GATEWAY_SECRET": secret,
	}, slog.New(slog.DiscardHandler), run)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	for authorization, want := range map[string]int{
		"": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized, "Bearer wrong": http.StatusUnauthorized, "Basic " + secret: http.StatusUnauthorized,
		"Bearer " + secret: http.StatusCreated,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/v1/stores/"+uuid.NewString(), strings.NewReader(`{"name": "Green Leaf"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Close = true
		r.Header.Set("Authorization", authorization)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close() // nothing of it is read
		if w.StatusCode != want {
			t.Errorf("%q was answered with %d, want %d", authorization, w.StatusCode, want)
		}
	}
}
