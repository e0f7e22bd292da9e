package backendtest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

// Start runs a program in the test's own process, until the test ends at the latest.
func Start(
	t testing.TB, environment map[string]string, log *slog.Logger,
	run func(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error,
) *consumetest.Running {
	t.Helper()
	return consumetest.Start(t, started(func(ctx context.Context) error { return run(ctx, nil, Lookup(environment), log) }))
}

type started func(ctx context.Context) error

// Run makes it something that consumetest can start.
func (s started) Run(ctx context.Context) error { return s(ctx) }

// Lookup is os.LookupEnv for an environment of a test's own.
func Lookup(environment map[string]string) program.Lookup {
	return func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}
}

// Address is one to listen on that nobody else has.
func Address(t testing.TB) string {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

// Request sends a request and returns the status of the answer, or 0 if there was none.
func Request(t testing.TB, method, url, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true // no connection is left behind
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = w.Body.Close() // nothing of it is read
	return w.StatusCode
}

// AwaitStatus waits until a program answers a path with a status; 0 is none.
func AwaitStatus(t testing.TB, address, path string, status int) {
	t.Helper()
	await.Until(t, address+path+" to answer with "+strconv.Itoa(status), func() bool {
		return Request(t, http.MethodGet, "http://"+address+path, "") == status
	})
}

// AwaitMetrics waits until a program's metrics have lines, whole ones.
func AwaitMetrics(t testing.TB, address string, lines ...string) {
	t.Helper()
	var missing []string
	defer func() {
		if len(missing) > 0 {
			t.Errorf("the metrics lack %q", missing)
		}
	}()
	await.Until(t, "the metrics", func() bool {
		body := Answer(t, "http://"+address+"/metrics")
		missing = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains("\n"+body, "\n"+line+"\n") })
		return len(missing) == 0
	})
}

// Answer is what a program answers to a GET, whatever its status; empty if it does not.
func Answer(t testing.TB, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true // no connection is left behind
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = w.Body.Close() }()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		return ""
	}
	return string(body)
}
