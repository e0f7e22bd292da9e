//go:build unix

package chaos

// The program as its users run it: a process with flags, signals and an exit code.

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience limits every wait for something that must happen. It is not a measure of speed.
const patience = 2 * time.Minute

// buildProgram builds the outbox program into a folder of the test.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "outbox")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/packfinderz/outbox/cmd/outbox")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return program
}

// process is a running program. It does not outlive its test.
type process struct {
	cmd    *exec.Cmd
	log    string        // the file with its standard error
	exited chan struct{} // closed when it has
	err    error         // how it ended; to be read after exited
}

// startProcess starts a program. Its standard output goes to the log, too, unless it has another.
func startProcess(t *testing.T, log string, stdout *os.File, program string, args ...string) *process {
	t.Helper()
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }() // the process has its own
	p := &process{cmd: exec.Command(program, args...), log: log, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	p.cmd.Env = cleanEnvironment()
	p.cmd.SysProcAttr = endWithParent()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails only when it has ended
		<-p.exited
	})
	return p
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

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("%s to process %d: %v\n%s", signal, p.cmd.Process.Pid, err, p.tail())
	}
}

// wait returns the exit code; -1 is death by a signal.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("process %d does not end\n%s", p.cmd.Process.Pid, p.tail())
		return -1
	}
}

// mustSucceed waits for exit code 0.
func (p *process) mustSucceed(t *testing.T) {
	t.Helper()
	if code := p.wait(t); code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", strings.Join(p.cmd.Args[:2], " "), code, p.err, p.tail())
	}
}

// ended reports whether the process has exited.
func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// logs reports whether the process has written one of some words to its log.
func (p *process) logs(words ...string) bool {
	content, err := os.ReadFile(p.log)
	for _, word := range words {
		if err == nil && bytes.Contains(content, []byte(word)) {
			return true
		}
	}
	return false
}

// tail is the end of the log, for a test that fails.
func (p *process) tail() string {
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
