package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// program is the outbox program, as it is shipped, in a folder of its own.
type program struct{ dir string }

// buildProgram compiles it from the workspace this was started in.
func buildProgram(ctx context.Context) (*program, error) {
	dir, err := os.MkdirTemp("", "outbox-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	p := &program{dir}
	build := exec.CommandContext(ctx, "go", "build", "-o", p.path(), "github.com/packfinderz/outbox/cmd/outbox")
	if out, err := build.CombinedOutput(); err != nil {
		p.remove()
		return nil, fmt.Errorf("build the outbox program (run this inside the repository): %w\n%s", err, out)
	}
	return p, nil
}

func (p *program) path() string { return filepath.Join(p.dir, "outbox") }

func (p *program) remove() { _ = os.RemoveAll(p.dir) } // a temporary folder

// command is the program with a discarding destination and otherwise default flags.
func (p *program) command(ctx context.Context, verb, layout, url string, flags ...string) *exec.Cmd {
	args := append([]string{verb, "--layout", layout, "--from", url, "--to", "discard:"}, flags...)
	return exec.CommandContext(ctx, p.path(), args...)
}

// drain runs a drain from its start to its exit, and checks that it left nothing.
func (p *program) drain(ctx context.Context, layout, url string, flags ...string) (time.Duration, error) {
	command := p.command(ctx, "drain", layout, url, flags...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	start := time.Now()
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("outbox drain: %w\n%s", err, out.Bytes())
	}
	return time.Since(start), nil
}
