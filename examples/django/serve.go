package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"

	"github.com/packfinderz/outbox/outboxtest/testserver"
)

const (
	// patience is how long Django may take to listen. It is no measure of speed.
	patience = time.Minute
	// look is the time between two looks whether it does.
	look = 50 * time.Millisecond
)

var errEnded = errors.New("manage.py runserver or the relay has ended; its last lines say why")

// serve runs Django and the relay until ctx ends, and calls ready when Django listens.
func (p *project) serve(ctx context.Context, out io.Writer, ready func()) error {
	web, err := p.start(out, "runserver", "--noreload", p.listen)
	if err != nil {
		return err
	}
	defer web.stop()
	if err := p.awaitListening(ctx, web); err != nil {
		return err
	}
	relay, err := p.start(out, "outbox", "relay")
	if err != nil {
		return err
	}
	defer relay.stop() // before Django: what it is posting has an answer
	ready()
	select {
	case <-ctx.Done():
		return nil
	case <-web.done:
		return errEnded
	case <-relay.done:
		return errEnded
	}
}

// process is a command of manage.py that goes on. It does not outlive this one.
type process struct {
	cmd  *exec.Cmd
	done <-chan struct{}
}

func (p *project) start(out io.Writer, args ...string) (*process, error) {
	cmd := exec.Command(p.python, append([]string{"manage.py"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.folder, p.environment, out, out
	done, err := testserver.Launch(cmd)
	if err != nil {
		return nil, err
	}
	return &process{cmd, done}, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	<-p.done
}

func (p *project) awaitListening(ctx context.Context, web *process) error {
	deadline := time.After(patience)
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", p.listen)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		case <-web.done:
			return errEnded
		case <-deadline:
			return fmt.Errorf("reach Django: %w", err)
		}
	}
}
