package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/packfinderz/outbox/examples/internal/database"
)

// takeTour runs both services, billing as a process of its own, and takes the tour.
func takeTour(ctx context.Context, o options, out io.Writer, log *slog.Logger) error {
	if (o.database == "") != (o.billingDatabase == "") {
		return errors.New("--database and --billing-database go together")
	}
	if o.database == "" {
		private, err := database.Open(ctx, "")
		if err != nil {
			return err
		}
		defer func() { _ = private.Close() }() // nothing is left to lose
		if o.billingDatabase, err = private.Another(ctx, "billing"); err != nil {
			return err
		}
		o.database = private.URL
	}
	if o.nats == "" {
		url, stop := privateBroker()
		defer stop()
		o.nats = url
	}
	billing := &child{args: []string{"--serve", "billing", "--database", o.billingDatabase, "--nats", o.nats}}
	defer billing.stop()
	if err := billing.start(ctx); err != nil {
		return err
	}
	return serveChat(ctx, o, log, func(url string) error {
		g := &guide{client: &client{chat: url, billing: billing.url}, out: out, process: billing}
		defer g.http.CloseIdleConnections()
		return g.tour(ctx)
	})
}

// child is this program as another process.
type child struct {
	args []string
	url  string
	cmd  *exec.Cmd
}

// patience is how long a child may take to end.
const patience = 10 * time.Second

// start runs the child, and returns when it serves.
func (c *child) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	c.cmd = exec.CommandContext(ctx, program, c.args...)
	c.cmd.Cancel, c.cmd.WaitDelay = func() error { return c.cmd.Process.Signal(os.Interrupt) }, patience
	c.cmd.Stderr = os.Stderr
	said, err := c.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("listen to the child: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("start billing: %w", err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return fmt.Errorf("billing did not start: %w", err)
	}
	c.url = strings.TrimSpace(strings.TrimPrefix(line, listening))
	return nil
}

// stop ends the child. It does nothing if there is none.
func (c *child) stop() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	_ = c.cmd.Process.Signal(os.Interrupt) // it may have ended
	_ = c.cmd.Wait()                       // how it ended is no news
	c.cmd = nil
}
