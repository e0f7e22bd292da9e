package httpserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/packfinderz/internal/outage"
)

// checkTime bounds the checks of one request.
const checkTime = 5 * time.Second

// Check checks something that the program needs.
type Check struct {
	// Name is its name in the answer.
	Name string
	// Ping returns why it cannot be used, or nil.
	Ping func(ctx context.Context) error
	// Tell is set if the whole error may be shown to anybody. Otherwise the answer has only the server's own words.
	Tell bool
}

// Health answers GET /healthz as long as the process lives, and GET /readyz if all checks pass.
func Health(mux *http.ServeMux, checks ...Check) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "ok") // the client may be gone
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkTime)
		defer cancel()
		for _, check := range checks {
			if err := check.Ping(ctx); err != nil {
				reason := outage.Reason(check.Name, err)
				if check.Tell {
					reason = check.Name + ": " + outbox.ErrorText(err)
				}
				http.Error(w, reason, http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = fmt.Fprintln(w, "ready") // the client may be gone
	})
}
