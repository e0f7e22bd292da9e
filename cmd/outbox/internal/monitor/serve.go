package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
)

// answerTime bounds one request, so that requests do not pile up while the database hangs.
const answerTime = 5 * time.Second

// Relay is what readiness needs of a relay.
type Relay interface {
	// Routes returns the status of the destination and its topics.
	Routes() []outbox.RouteStatus
	// StoreError returns the failing store operation.
	StoreError() error
}

// Serve answers on an address until stop is called.
func (m *Metrics) Serve(address string, pool *pgxpool.Pool, relay Relay, log *slog.Logger) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	var database outage
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "ok") // the client may be gone
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := m.ready(r.Context(), pool, &database, relay); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ready") // the client may be gone
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		var page bytes.Buffer
		if err := m.write(ctx, &page); err != nil {
			http.Error(w, "the events cannot be counted: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(page.Bytes()) // the client may be gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: answerTime, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the health server stopped", "error", err)
		}
	}()
	log.Info("listening", "address", listener.Addr().String())
	return func() {
		_ = server.Close() // the relay has stopped
		<-done
	}, nil
}

// outage remembers since when something has not answered.
type outage struct {
	mu    sync.Mutex
	since time.Time
}

// note records an answer, and returns when the current outage began.
func (o *outage) note(err error, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.since = time.Time{}
	case o.since.IsZero():
		o.since = now
	}
	return o.since
}

// checker is a store that can tell why it refuses to be read, such as a stream whose history was changed.
type checker interface {
	Check(ctx context.Context) error
}

// ready returns why the relay cannot work just now, or nil.
func (m *Metrics) ready(ctx context.Context, pool *pgxpool.Pool, database *outage, relay Relay) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := pool.Ping(ctx)
	if since := database.note(err, time.Now()); err != nil {
		return fmt.Errorf("the database has not answered since %s (%s): %s",
			since.UTC().Format(time.RFC3339), time.Since(since).Round(time.Second), outbox.ErrorText(err))
	}
	if store, ok := m.store.(checker); ok {
		if err := store.Check(ctx); err != nil {
			return fmt.Errorf("nothing is read: %s", outbox.ErrorText(err))
		}
	}
	if err := relay.StoreError(); err != nil {
		return err
	}
	var closed []string
	for _, route := range relay.Routes() {
		if !route.Open {
			closed = append(closed, fmt.Sprintf("%s closed since %s (%s): %s", route.Name(),
				route.Since.UTC().Format(time.RFC3339), time.Since(route.Since).Round(time.Second), route.Error))
		}
	}
	if len(closed) > 0 {
		return errors.New(strings.Join(closed, "\n"))
	}
	return nil
}
