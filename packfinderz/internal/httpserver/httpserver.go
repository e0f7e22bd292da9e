// Package httpserver serves HTTP until it is stopped, with health and readiness checks.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// Timeouts, so that slow clients do not pile up.
const (
	headerTime = 5 * time.Second
	bodyTime   = 30 * time.Second
	answerTime = 60 * time.Second
	idleTime   = 2 * time.Minute
	// grace is how long a stop waits for requests in progress. Heroku kills after 30 s.
	grace = 20 * time.Second
)

// Server is a running server.
type Server struct {
	server *http.Server
	served chan error
}

// Start serves on the address of a variable. A host that cannot be resolved is an env.ErrUsage.
func Start(variable, address string, handler http.Handler, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var unknown *net.DNSError
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("%w: %s is %q: %w", env.ErrUsage, variable, address, err)
		}
		return nil, fmt.Errorf("listen on %s (set %s to use another address): %w", address, variable, err)
	}
	s := &Server{
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.server.Serve(listener) }()
	log.Info("listening", "address", listener.Addr().String())
	return s, nil
}

// Run waits until ctx ends, then stops the server. It fails if the server ends before.
func (s *Server) Run(ctx context.Context) error {
	select {
	case err := <-s.served:
		return fmt.Errorf("the server ended: %w", err)
	case <-ctx.Done():
		return s.Stop()
	}
}

// Stop accepts no more requests and finishes those in progress.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("some requests did not end: %w", err), s.server.Close())
	}
	return nil
}
