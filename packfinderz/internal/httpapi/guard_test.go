package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/packfinderz/outbox/packfinderz/internal/httpapi"
)

// TestGuardOfTheLoopback: without a secret the machine itself is answered, and nobody who only looks like it.
func TestGuardOfTheLoopback(t *testing.T) {
	t.Parallel()
	passed := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	guard := httpapi.Guard("", passed, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		from, host string
		want       int
	}{
		{"127.0.0.1:5000", "127.0.0.1:8080", http.StatusNoContent},
		{"127.0.0.1:5000", "localhost:8080", http.StatusNoContent},
		{"[::1]:5000", "[::1]:8080", http.StatusNoContent},
		{"[::ffff:127.0.0.1]:5000", "localhost", http.StatusNoContent},
		{"127.0.0.1:5000", "evil.example.com:8080", http.StatusUnauthorized}, // a name that points at the loopback
		{"10.0.0.7:5000", "localhost:8080", http.StatusUnauthorized},
		{"", "localhost:8080", http.StatusUnauthorized},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/licenses/1", http.NoBody)
		r.RemoteAddr, r.Host = c.from, c.host
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("from %s for %s: %d, want %d", c.from, c.host, w.Code, c.want)
		}
	}
}
