package testdb

import (
	"context"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// Server is a PostgreSQL of one's own. Its methods may be called from several goroutines.
type Server struct{ server *pgserver.Server }

// NewServer starts a server that only this test has, for tests that stop it. It ends with the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	return &Server{pgtest.Server(t, nil)}
}

// Start is NewServer for a program that is no test, such as one that lends a developer what the environment lacks. The
// server ends with Stop, or with the program. The program must call RunKeeperIfAsked first in main.
func Start(ctx context.Context) (*Server, error) {
	server, err := pgserver.Start(ctx, pgserver.Config{})
	if err != nil {
		return nil, err
	}
	return &Server{server}, nil
}

// RunKeeperIfAsked is the other half of Start: the program runs itself once more to watch over the server, which is gone
// even when the program is killed. In that second process it does not return; Main calls it for tests.
func RunKeeperIfAsked() { pgserver.RunKeeperIfAsked() }

// URL is the address of a database, over the Unix socket.
func (s *Server) URL(database string) string { return s.server.URL(database) }

// TCPURL is the address of a database over TCP on 127.0.0.1.
func (s *Server) TCPURL(database string) string { return s.server.TCPURL(database) }

// Crash ends the server as a power failure does; Resume starts it again. A server of NewServer does not wait for the disk: of what
// was committed since its last CHECKPOINT, some is lost.
func (s *Server) Crash(ctx context.Context) error { return s.server.Halt(ctx, pgserver.Immediate) }

// Resume starts a crashed server with the data and the port it had.
func (s *Server) Resume(ctx context.Context) error { return s.server.Resume(ctx) }

// Stop ends the server and removes its folder. Stopping twice does nothing.
func (s *Server) Stop() error { return s.server.Stop() }
