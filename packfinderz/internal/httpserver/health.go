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

// Check asks whether something that the program needs is there.
type Check struct {
	// Name is what it is, for the answer.
	Name string
	// Ping is nil if it is there.
	Ping func(ctx context.Context) error
	// Tell is set where the whole error may be shown: whoever asks for readiness need not be somebody we know. Otherwise it is only what
	// the server itself has said.
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
			err := check.Ping(ctx)
			switch {
			case err != nil && check.Tell:
				http.Error(w, check.Name+": "+outbox.ErrorText(err), http.StatusServiceUnavailable)
				return
			case err != nil:
				http.Error(w, outage.Reason(check.Name, err), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = fmt.Fprintln(w, "ready") // the client may be gone
	})
}
