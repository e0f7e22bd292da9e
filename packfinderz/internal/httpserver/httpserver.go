// Package httpserver answers requests until it is stopped, and says whether the program is alive and ready.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// A client may take this long, so that slow ones do not pile up.
const (
	headerTime = 5 * time.Second
	bodyTime   = 30 * time.Second
	answerTime = 60 * time.Second
	idleTime   = 2 * time.Minute
	// grace is how long a stop waits for requests under way. Heroku kills after 30 s.
	grace = 20 * time.Second
)

// Server is a running server.
type Server struct {
	server *http.Server
	served chan error
}

// Start listens on an address and answers.
func Start(address string, handler http.Handler, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
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

// Run waits until ctx ends, or the server by itself, and stops it.
func (s *Server) Run(ctx context.Context) error {
	select {
	case err := <-s.served:
		return fmt.Errorf("the server ended: %w", err)
	case <-ctx.Done():
		return s.Stop()
	}
}

// Stop takes no more requests and finishes those under way.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("some requests did not end: %w", err), s.server.Close())
	}
	return nil
}
