//go:build unix

// Package process runs the program as its users do: built, with flags, signals and an exit code.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// Patience limits every wait for something that must happen. It is not a measure of speed.
const Patience = 2 * time.Minute

// Build builds the outbox program into a folder of the test.
func Build(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "outbox")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/packfinderz/outbox/cmd/outbox")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return program
}

// previousEnv names the program of the version before this one, for copies of the files without their history.
const previousEnv = "OUTBOX_PREVIOUS"

// noHistory is the exit code of scripts/ensure-previous where there is none.
const noHistory = 3

// Previous is the outbox program of the version before this one, built from the commit that the Makefile names. Only
// where the files have no history at all, as in a source archive, the test is left out.
func Previous(t testing.TB) string {
	t.Helper()
	if program := os.Getenv(previousEnv); program != "" {
		return program
	}
	var problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join("scripts", "ensure-previous"))
	cmd.Dir, cmd.Stderr = repository(t), &problems
	output, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == noHistory {
		t.Skipf("LEFT OUT, nothing is known about upgrades: %s; set %s to the program of the version before", bytes.TrimSpace(problems.Bytes()), previousEnv)
	}
	if err != nil {
		t.Fatalf("build the program of the version before: %v\n%s", err, problems.Bytes())
	}
	return strings.TrimSpace(string(output))
}

// repository is the folder of the whole repository.
func repository(t testing.TB) string {
	t.Helper()
	work, err := exec.CommandContext(t.Context(), "go", "env", "GOWORK").Output()
	if err != nil {
		t.Fatalf("go env GOWORK: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(work)))
}

// Process is a running program. It does not outlive its test.
type Process struct {
	cmd    *exec.Cmd
	log    string          // the file with its standard error
	exited <-chan struct{} // closed when it has
}

// Start starts a program. Its standard output goes to the log, too, unless it has another.
func Start(t testing.TB, log string, stdout *os.File, program string, args ...string) *Process {
	t.Helper()
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }() // the process has its own
	p := &Process{cmd: exec.Command(program, args...), log: log}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	p.launch(t)
	return p
}

// launch starts the command, and ends it with the test.
func (p *Process) launch(t testing.TB) {
	t.Helper()
	p.cmd.Env = cleanEnvironment()
	var err error
	if p.exited, err = testserver.Launch(p.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails only when it has ended
		<-p.exited
	})
}

// cleanEnvironment keeps flags from being set behind the test's back.
func cleanEnvironment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OUTBOX_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// Send sends a signal, if the process still runs.
func (p *Process) Send(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

// Signal sends a signal to a process that must be running.
func (p *Process) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.Send(signal); err != nil {
		t.Fatalf("%s to process %d: %v\n%s", signal, p.cmd.Process.Pid, err, p.Tail())
	}
}

// Wait returns the exit code; -1 is death by a signal.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(Patience):
		t.Fatalf("process %d does not end\n%s", p.cmd.Process.Pid, p.Tail())
		return -1
	}
}

// MustSucceed waits for exit code 0.
func (p *Process) MustSucceed(t testing.TB) {
	t.Helper()
	if code := p.Wait(t); code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", strings.Join(p.cmd.Args[:2], " "), code, p.Err(), p.Tail())
	}
}

// Ended reports whether the process has exited.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Logs reports whether the process has written one of some words to its log.
func (p *Process) Logs(words ...string) bool {
	content, err := os.ReadFile(p.log)
	for _, word := range words {
		if err == nil && bytes.Contains(content, []byte(word)) {
			return true
		}
	}
	return false
}

// Tail is the end of the log, for a test that fails.
func (p *Process) Tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 3000
	if len(content) > most {
		content = content[len(content)-most:]
	}
	return fmt.Sprintf("the end of %s:\n%s", p.log, content)
}

// Err says how the process ended; nil while it runs and after success.
func (p *Process) Err() error {
	if !p.Ended() || p.cmd.ProcessState.Success() {
		return nil
	}
	return errors.New(p.cmd.ProcessState.String())
}

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// AwaitLog waits until the process has written one of some words to its log.
func (p *Process) AwaitLog(t testing.TB, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := await.Poll(ctx, func() bool { return p.Ended() || p.Logs(words...) }); err != nil || !p.Logs(words...) {
		t.Fatalf("process %d has not written %q\n%s", p.PID(), words, p.Tail())
	}
}
