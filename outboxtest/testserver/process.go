// Package testserver runs the servers of others for a test: each on a port of its own, and
// none of them outlives the process that started it.
package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a running server.
type Process struct {
	process *os.Process
	log     string
	done    <-chan struct{}
}

// Start runs a command and adds what it prints to the file log, unless the command has an output
// already.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", cmd.Path, err)
	}
	defer func() { _ = output.Close() }() // the server has its own copy
	if cmd.Stdout == nil {
		cmd.Stdout = output
	}
	cmd.Stderr = output
	done, err := Launch(cmd)
	if err != nil {
		return nil, err
	}
	return &Process{process: cmd.Process, log: log, done: done}, nil
}

// Launch starts a command that does not outlive this process. When the channel is closed, the
// command has ended, as its ProcessState says.
func Launch(cmd *exec.Cmd) (done <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	endWithParent(cmd.SysProcAttr)
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel ties the command's end to the thread that started it. This one is its own
		// and stays: on a thread that others use, the end of theirs would kill it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the ProcessState has it
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	return ended, nil
}

// Done is closed when the server has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the server without a word, as kill -9 does. It may be called twice.
func (p *Process) Kill() {
	_ = p.process.Kill() // fails only when it has ended
	<-p.done
}

// AwaitReady returns when ready does so without an error, and fails when the server ends or
// takes longer than patience.
func (p *Process) AwaitReady(patience time.Duration, ready func() error) error {
	deadline := time.After(patience)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("the server ended; it said:\n" + p.LastWords())
		case <-deadline:
			return fmt.Errorf("the server does not get ready: %w; it said:\n%s", err, p.LastWords())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// LastWords are the last lines of the log, for a test that has failed.
func (p *Process) LastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
