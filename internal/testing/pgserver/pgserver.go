// Package pgserver runs a PostgreSQL cluster of one's own in a temporary folder, for tests and for the demo.
//
// A cluster never outlives its users, even when they are killed: a keeper process (the same program, re-executed)
// owns the server and watches a lock that the kernel takes from every user that dies. Programs that call Start must
// therefore call RunKeeperIfAsked first in main or TestMain. See keeper.go for the life of a cluster and attach.go
// for how users find it.
package pgserver

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"time"
)

// superuser is the role that owns a cluster; both URLs log in as it.
const superuser = "postgres"

// Config says which cluster Start shall give.
type Config struct {
	// Settings are written to postgresql.conf. Default: none, that is PostgreSQL's own defaults.
	// TestSettings has a set for data that may be lost.
	Settings map[string]string

	// Shared makes all processes of this user that ask for the same binaries and settings use one cluster.
	// Default: false, a private cluster that ends with Stop or with the process.
	Shared bool

	// Grace is how long a shared cluster without users waits for a next one before it ends; that of the process which
	// started the cluster counts. Default: 0, it ends at once, as a private cluster always does.
	Grace time.Duration

	// StandbyOf makes the cluster a standby of this one: a copy of its data that follows it, over its Unix socket, with
	// the settings on top of its own. Default: nil, a cluster of its own. A standby is always private.
	StandbyOf *Server

	// CopyOf makes the cluster a copy of this one, by pg_basebackup, that is a server of its own from the start. Default:
	// nil. A copy is always private.
	CopyOf *Server
}

// Mode says how a server is shut down.
type Mode string

const (
	// Fast rolls back open transactions and closes all connections, with a clean shutdown of the data.
	Fast Mode = "fast"
	// Immediate ends the server as a crash does: the next start goes through crash recovery.
	Immediate Mode = "immediate"
)

// state is what a user must know about a running cluster. The keeper writes it to the cluster's folder.
type state struct {
	KeeperPID int    `json:"keeper_pid"`
	Port      int    `json:"port"`
	SocketDir string `json:"socket_dir"`
	Password  string `json:"password"`
}

// Server is a user's hold on a running cluster. Its methods may be called from several goroutines.
type Server struct {
	state state
	hold  *hold
}

// Start gives a cluster that accepts connections: a new one, or in shared mode the one that runs already. The error
// is ErrNoBinaries when PostgreSQL is not installed; that of a failed start holds the end of the server's log.
func Start(ctx context.Context, config Config) (*Server, error) {
	return start(ctx, config)
}

// URL returns the address of a database over the Unix socket, which lets in this system user without a password.
func (s *Server) URL(database string) string {
	query := url.Values{
		"host":    {s.state.SocketDir},
		"port":    {strconv.Itoa(s.state.Port)},
		"sslmode": {"disable"},
	}
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}

// TCPURL returns the address of a database over TCP on 127.0.0.1, with the password that TCP always asks for.
func (s *Server) TCPURL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.state.Password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.state.Port)),
		Path:     "/" + database,
		RawQuery: url.Values{"sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// Halt shuts a private server down but keeps its data; Resume starts it again. Halting a halted server does nothing.
func (s *Server) Halt(ctx context.Context, mode Mode) error {
	return s.hold.command(ctx, "halt "+string(mode))
}

// Resume starts a halted private server with the data and port it had. Resuming a running server does nothing.
func (s *Server) Resume(ctx context.Context) error {
	return s.hold.command(ctx, "resume")
}

// Restart is Halt and Resume.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	if err := s.Halt(ctx, mode); err != nil {
		return err
	}
	return s.Resume(ctx)
}

// Stop gives the cluster up. A private one is gone, with its folder, when Stop returns; a shared one stays for its
// other users. Stopping twice does nothing.
func (s *Server) Stop() error {
	return s.hold.release()
}
