//go:build unix && !aix && !solaris

package pgserver

// One process of PostgreSQL, run by the keeper: under which user it runs, how it ends, when it is ready.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// readyTimeout limits the start of a server, crash recovery included.
	readyTimeout = time.Minute
	// endTimeout is how long a process may take to heed a signal before it gets the next one.
	endTimeout = 20 * time.Second
)

// process is a running program of PostgreSQL.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; to be read after done
}

// serverCredential returns the user to run PostgreSQL as, because it refuses to run as root; nil is our own.
func serverCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading the user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading the group id of %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// spawn starts a program of PostgreSQL, with its output in the server's log.
func (c *cluster) spawn(name string, args ...string) (*process, error) {
	path, err := clientFor(c.bin, name)
	if err != nil {
		return nil, err
	}
	output, err := os.OpenFile(c.folder.serverLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer closeQuietly(output)
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.credential}
	endWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("running %s: %w", name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// end sends the signals one after the other, at last SIGKILL, until the process has ended.
func (p *process) end(signals ...syscall.Signal) {
	for _, signal := range append(signals, syscall.SIGKILL) {
		_ = p.cmd.Process.Signal(signal) // fails only when the process has ended
		select {
		case <-p.done:
			return
		case <-time.After(endTimeout):
		}
	}
}

// awaitReady returns when the server lets a client in.
func (c *cluster) awaitReady(ctx context.Context, server *process) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client := Server{state: state{Port: c.port, SocketDir: c.folder.sockets()}}
	for {
		conn, err := pgconn.Connect(ctx, client.URL("postgres"))
		if err == nil {
			_ = conn.Close(ctx)
			return nil
		}
		select {
		case <-server.done:
			return fmt.Errorf("the server ended: %w", server.err)
		case <-ctx.Done():
			return fmt.Errorf("the server does not get ready: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
