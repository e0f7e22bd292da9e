//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
)

// TestInterruptAll has a command that waits for another one, as go test waits for its test: the
// end of the context ends both. The pipe is at its end when neither holds it any more.
func TestInterruptAll(t *testing.T) {
	t.Parallel()
	output, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", `sh -c 'echo ready; exec sleep 1000'; exit 0`)
	command.Stdout = held
	interruptAll(command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	lines := bufio.NewReader(output)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("read %q: %v", line, err)
	}
	cancel()
	if err := command.Wait(); err == nil {
		t.Error("the command ended as if nothing had happened")
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("read %q, %v", rest, err)
	}
}
