package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// patience is how long a test that is interrupted may take to end, before it is killed.
const patience = 20 * time.Second

// tree is a copy of the repository's files, to put faults into.
type tree struct{ root string }

// topFolder is the root of the repository around the working folder.
func topFolder(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", errors.New("this is no folder of the repository")
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// copyTree copies what git knows of, and what it would add, into a folder.
func copyTree(ctx context.Context, from, to string) (tree, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		return tree{}, fmt.Errorf("list the files of %s: %w", from, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		err := copyFile(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a file that is deleted, but not yet in git
			return tree{}, fmt.Errorf("copy the repository: %w", err)
		}
	}
	return tree{root: to}, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// apply puts a fault in, or takes it out with the option "--reverse"; "--check" only tries.
func (t tree) apply(ctx context.Context, p patch, options ...string) error {
	command := exec.CommandContext(ctx, "git", append(append([]string{"apply"}, options...), p.path)...)
	command.Dir = t.root
	// The copy is no repository; without this a repository around it would be taken for it.
	command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(t.root))
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not apply: %s", p.name, bytes.TrimSpace(text))
	}
	return nil
}

// test runs tests of a package and returns what they print. The error is go test's: nil if
// they passed.
func (t tree) test(ctx context.Context, pkg string, options ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", append(append([]string{"test", "-count=1", "-v", "-vet=off", "-ldflags=-w"}, options...), pkg)...)
	command.Dir = t.root
	// An interrupted go leaves its folder behind; here it goes with the copies.
	command.Env = append(os.Environ(), "GOTMPDIR="+filepath.Dir(t.root))
	interruptAll(command)
	command.WaitDelay = patience
	text, err := command.CombinedOutput()
	return string(text), err
}
