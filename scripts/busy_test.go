//go:build unix

package scripts_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestBusy runs commands that end in different ways: the exit code is theirs, signals reach
// them, and the loops end with them. Loops and command hold a pipe, which is at its end when
// none of them is left.
func TestBusy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command []string
		signal  syscall.Signal // sent after the command has written a line
		code    int            // -1: ended by the signal
	}{
		"succeeds":       {command: []string{"true"}},
		"fails":          {command: []string{"sh", "-c", "exit 3"}, code: 3},
		"does not exist": {command: []string{"./no-such-command"}, code: 127},
		"none":           {code: 2},
		"is asked to end": {
			command: []string{"sh", "-c", "trap 'exit 5' TERM; echo >&3; while :; do sleep 0.1; done"}, signal: syscall.SIGTERM, code: 5,
		},
		"is killed": {command: []string{"sh", "-c", "echo >&3; exec sleep 1000"}, signal: syscall.SIGKILL, code: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, held, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = output.Close() }()
			busy := exec.CommandContext(t.Context(), "./busy", test.command...)
			busy.ExtraFiles = []*os.File{held}
			if err := busy.Start(); err != nil {
				t.Fatal(err)
			}
			_ = held.Close()
			lines := bufio.NewReader(output)
			if test.signal != 0 {
				if _, err := lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				if err := busy.Process.Signal(test.signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = busy.Wait() // the exit code says more
			if code := busy.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if _, err := io.ReadAll(lines); err != nil {
				t.Error(err)
			}
		})
	}
}
