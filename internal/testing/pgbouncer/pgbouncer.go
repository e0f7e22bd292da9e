// Package pgbouncer starts PgBouncer for tests.
package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// Modes of a pooler.
const (
	Transaction = "transaction"
	Session     = "session"
)

// Config is how a pooler is started.
type Config struct {
	// Mode is Transaction or Session.
	Mode string
	// Servers is how many sessions of the server it has. Default 20.
	Servers int
}

// Start starts a pooler in front of a database and returns the address through it.
func Start(t testing.TB, database string, config Config) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if errors.Is(err, exec.ErrNotFound) {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // not everybody has it in PATH
	}
	if err != nil {
		t.Fatal("pgbouncer is not there: run scripts/ensure-pgbouncer, or install it (Debian: apt-get install pgbouncer; " +
			"macOS: brew install pgbouncer)")
	}
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	behind, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	password := ""
	if behind.Password != "" {
		password = " password=" + behind.Password
	}
	if config.Servers == 0 {
		config.Servers = 20
	}
	settings := fmt.Sprintf(`[databases]
shop = host=%s port=%d dbname=%s user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 500
server_login_retry = 1
`, behind.Host, behind.Port, behind.Database, behind.User, password, port, config.Mode, config.Servers)
	if os.Geteuid() == 0 {
		settings += "user = postgres\n" // it does not run as root either
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, "pgbouncer.log")
	process, stop, err := supervise(func() (*testserver.Process, error) { return testserver.Start(exec.Command(program, file), log) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if content, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the pooler said\n%s", content)
		}
	})
	through := url.URL{Scheme: "postgres", User: url.User("shop"), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/shop", RawQuery: "sslmode=disable"}
	if err := process.AwaitReady(30*time.Second, func() error {
		conn, err := pgx.Connect(t.Context(), through.String())
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return through.String()
}

// supervise starts a pooler, and starts it again when it ends by itself, as its service manager would: PgBouncer 1.18 ends with
// "bad client state" when a client goes in the middle of a request to cancel.
func supervise(start func() (*testserver.Process, error)) (first *testserver.Process, stop func(), err error) {
	if first, err = start(); err != nil {
		return nil, nil, err
	}
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for process := first; ; {
			select {
			case <-stopping:
				process.Kill()
				return
			case <-process.Done():
			}
			again, err := start()
			if err != nil {
				return // whoever uses it says that it is not there
			}
			process = again
		}
	}()
	return first, func() { close(stopping); <-stopped }, nil
}

// traces is what others can see of a session: its settings, but for those that a pooler gives it on
// purpose and those of a language that was used in it, and what was prepared or listened to in it.
const traces = `
SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'plpgsql.%' AND name NOT IN ('application_name', 'transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
UNION ALL SELECT 'prepared: ' || name, statement FROM pg_prepared_statements
UNION ALL SELECT 'listening: ' || channel, '' FROM pg_listening_channels() AS channel
UNION ALL SELECT 'locked: ' || classid || '/' || objid, mode FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`

// Traces looks, through a pooler in transaction mode with so many sessions, at every one of them. It
// returns what is there, by session of the server. The sessions must not be in use.
func Traces(t testing.TB, address string, servers int) map[int]map[string]string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it is for cleanups, too
	found := make(map[int]map[string]string)
	for range servers {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		// A transaction that stays open keeps its session: the next look is at another.
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(ctx) }()
		var pid int
		if err := tx.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(ctx, traces, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		found[pid] = make(map[string]string)
		var name, value string
		if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			found[pid][name] = value
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// AssertNoTraces compares every session behind a pooler with a fresh one of the same database.
func AssertNoTraces(t testing.TB, database, address string, servers int) {
	t.Helper()
	fresh := Traces(t, database, 1)
	for pid, session := range Traces(t, address, servers) {
		for _, clean := range fresh {
			for name, value := range session {
				if was, ok := clean[name]; !ok || was != value {
					t.Errorf("session %d of the server has %s = %q, a fresh one %q", pid, name, value, was)
				}
			}
		}
	}
}
