package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ErrExposed means that a console without credentials would listen on an address that others can reach.
var ErrExposed = errors.New("the console has no credentials and would be open to everybody who reaches this address; " +
	"give it credentials, or listen on 127.0.0.1")

const (
	// Timeouts of the server, so that idle clients do not hold connections open.
	headerTime = 5 * time.Second
	readTime   = 30 * time.Second
	writeTime  = 60 * time.Second
	idleTime   = 2 * time.Minute
	// shutdownTime is how long open requests may take when the server stops.
	shutdownTime = 5 * time.Second
	// maxHeader bounds the headers of a request.
	maxHeader = 32 << 10
)

// Server is a listening console.
type Server struct {
	// URL is the address of its first page.
	URL    string
	server *http.Server
	done   chan struct{}
	err    error
}

// Listen serves the console on an address, such as 127.0.0.1:8090; with TLS if a config is given. It returns ErrExposed
// if the address lets everybody in. Close the server when done.
func (c *Console) Listen(address string, secure *tls.Config) (*Server, error) {
	place, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: it must be an address such as 127.0.0.1:8090: %w", address, err)
	}
	if c.access.open() && !place.IP.IsLoopback() {
		return nil, fmt.Errorf("listen on %q: %w", address, ErrExposed)
	}
	listener, err := net.ListenTCP("tcp", place)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	scheme := "http"
	s := &Server{done: make(chan struct{}), server: &http.Server{
		Handler: c, TLSConfig: secure, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}}
	serve := func() error { return s.server.Serve(listener) }
	if secure != nil {
		scheme = "https"
		serve = func() error { return s.server.ServeTLS(listener, "", "") }
	} else if !place.IP.IsLoopback() && len(c.access.Proxy.Addresses) == 0 {
		c.log.Warn("the console is served without TLS; passwords and payloads can be read on the way", "address", address)
	}
	at := listener.Addr().String()
	if _, port, err := net.SplitHostPort(at); err == nil && (len(place.IP) == 0 || place.IP.IsUnspecified()) {
		at = net.JoinHostPort("localhost", port) // it listens on all addresses of this machine, this one included
	}
	s.URL = scheme + "://" + at + c.prefix + "/"
	go func() {
		defer close(s.done)
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("serve the console: %w", err)
		}
	}()
	return s, nil
}

// Done is closed when the server has stopped, by Close or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close stops listening and gives open requests a moment to finish.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close() // open requests have had their time
	}
	<-s.done
	return s.err
}
