//go:build unix && !aix && !solaris

package pgserver

// The cluster as its keeper sees it: made by initdb, then a server process that can be halted and resumed.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken from a range below the one that systems use for outgoing connections, so that none of those takes
// the port of a halted server.
const (
	lowestPort  = 15000
	highestPort = 31999
	portTries   = 20
)

type cluster struct {
	folder     folder
	bin        string
	credential *syscall.Credential // nil: our own user
	port       int
	password   string
	primary    string   // the server to copy; empty: none
	follow     bool     // it is a standby of that
	server     *process // nil while halted
}

// create makes the cluster and starts its server.
func (c *cluster) create(ctx context.Context, settings map[string]string) error {
	var err error
	if c.credential, err = serverCredential(); err != nil {
		return err
	}
	for _, dir := range []string{c.folder.data(), c.folder.sockets()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("making a server folder: %w", err)
		}
		if err := c.giveToServer(dir); err != nil {
			return err
		}
	}
	fill := c.initialize
	if c.primary != "" {
		fill = c.copyPrimary
		if _, err := clientFor(c.bin, "pg_basebackup"); errors.Is(err, ErrNoProgram) {
			fill = c.copyByHand
		}
	}
	if err := fill(ctx); err != nil {
		return fmt.Errorf("making the cluster: %w%s", err, tail("server", c.folder.serverLog()))
	}
	if err := c.configure(settings); err != nil {
		return err
	}
	for range portTries {
		if c.port, err = freePort(); err != nil {
			return err
		}
		// Between choosing the port and binding it, another process may have taken it.
		if err = c.resume(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// initialize runs initdb. TCP is never without a password, because every user of the machine can connect to it.
func (c *cluster) initialize(ctx context.Context) error {
	c.password = rand.Text()
	passwordFile := filepath.Join(string(c.folder), "password")
	if err := os.WriteFile(passwordFile, []byte(c.password), 0o600); err != nil {
		return fmt.Errorf("writing the password file: %w", err)
	}
	if err := c.giveToServer(passwordFile); err != nil {
		return err
	}
	// What initdb does not write to disk at once could only be lost with the machine, and then the cluster is useless.
	if err := c.run(ctx, "initdb", "-D", c.folder.data(), "-U", superuser, "-E", "UTF8", "--locale=C", "--no-sync",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile="+passwordFile); err != nil {
		return err
	}
	if err := os.Remove(passwordFile); err != nil {
		return fmt.Errorf("removing the password file: %w", err)
	}
	return nil
}

// copyPrimary copies the primary's data. A standby follows it when it starts.
func (c *cluster) copyPrimary(ctx context.Context) error {
	args := []string{"-D", c.folder.data(), "-d", c.primary, "--checkpoint=fast", "--no-sync"}
	if c.follow {
		args = append(args, "--write-recovery-conf")
	}
	return c.run(ctx, "pg_basebackup", args...)
}

// run runs a program of PostgreSQL to its end.
func (c *cluster) run(ctx context.Context, name string, args ...string) error {
	program, err := c.spawn(name, args...)
	if err != nil {
		return err
	}
	select {
	case <-program.done:
		return program.err
	case <-ctx.Done():
		program.end(syscall.SIGTERM)
		return ctx.Err()
	}
}

func (c *cluster) configure(settings map[string]string) error {
	file, err := os.OpenFile(filepath.Join(c.folder.data(), "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("opening the settings file: %w", err)
	}
	_, err = file.WriteString("\n" + formatSettings(settings))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the settings file: %w", err)
	}
	return nil
}

func (c *cluster) giveToServer(path string) error {
	if c.credential == nil {
		return nil
	}
	if err := os.Chown(path, int(c.credential.Uid), int(c.credential.Gid)); err != nil {
		return fmt.Errorf("giving a file to the server's user: %w", err)
	}
	return nil
}

// resume starts the server, unless it runs, and waits until it accepts connections.
func (c *cluster) resume(ctx context.Context) error {
	if c.server != nil {
		return nil
	}
	logged := fileSize(c.folder.serverLog())
	server, err := c.spawn("postgres", "-D", c.folder.data(),
		"-p", strconv.Itoa(c.port), "-h", "127.0.0.1", "-k", c.folder.sockets())
	if err != nil {
		return err
	}
	if err := c.awaitReady(ctx, server); err != nil {
		server.end(syscall.SIGQUIT)
		if logsTakenPort(c.folder.serverLog(), logged) {
			err = fmt.Errorf("%w: %d", errPortTaken, c.port)
		}
		return fmt.Errorf("starting the server: %w%s", err, tail("server", c.folder.serverLog()))
	}
	c.server = server
	return nil
}

// halt ends the server process, if it runs.
func (c *cluster) halt(mode Mode) {
	if c.server == nil {
		return
	}
	if mode == Immediate {
		c.server.end(syscall.SIGQUIT)
	} else {
		c.server.end(syscall.SIGINT, syscall.SIGQUIT)
	}
	c.server = nil
}

// ended is closed when the server has died by itself; while it is halted, never.
func (c *cluster) ended() <-chan struct{} {
	if c.server == nil {
		return nil
	}
	return c.server.done
}

func freePort() (int, error) {
	var err error
	for range portTries {
		port := lowestPort + mathrand.IntN(highestPort-lowestPort+1)
		var listener net.Listener
		if listener, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("finding a free port: %w", err)
}
