// Mutants puts known faults into a copy of the code, one at a time, and demands that the test
// which each of them names fails. It shows that the tests can fail; a fault that no test
// notices, and a patch that no longer applies, are errors.
//
//	go run ./internal/testing/mutants            # all
//	go run ./internal/testing/mutants 'relay-*'  # some
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// folder is where the patches are, from the root of the repository.
const folder = "internal/testing/mutants"

func main() {
	copies := flag.Int("copies", 2, "how many faults are tried at once")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mutants [-copies N] [pattern of names]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 1 || *copies < 1 {
		flag.Usage()
		os.Exit(2)
	}
	pattern := "*"
	if flag.NArg() == 1 {
		pattern = flag.Arg(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	err := run(ctx, pattern, *copies)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// endings are the signals that end a run. A hangup is none of them under nohup.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func run(ctx context.Context, pattern string, copies int) (err error) {
	top, err := topFolder(ctx)
	if err != nil {
		return err
	}
	patches, err := readPatches(filepath.Join(top, folder), pattern)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("make a folder for the copies: %w", err)
	}
	defer func() {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		err = errors.Join(err, os.RemoveAll(temporary))
	}()
	trees := make([]tree, copies)
	for i := range trees {
		if trees[i], err = copyTree(ctx, top, filepath.Join(temporary, strconv.Itoa(i))); err != nil {
			return err
		}
	}
	if err := checkAll(ctx, trees[0], patches); err != nil {
		return err
	}
	if err := providePrevious(ctx, top); err != nil {
		return err
	}
	start := time.Now()
	if err := passAll(ctx, trees, patches); err != nil {
		return err
	}
	verdicts, err := killAll(ctx, trees, patches)
	if err != nil {
		return err
	}
	return summarise(verdicts, time.Since(start))
}

// providePrevious tells the tests where the program of the version before this one is: the copies have no history to
// build it from.
func providePrevious(ctx context.Context, top string) error {
	ensure := exec.CommandContext(ctx, filepath.Join(top, "scripts", "ensure-previous"))
	ensure.Stderr = os.Stderr
	program, err := ensure.Output()
	if err != nil {
		return fmt.Errorf("build the program of the version before: %w", err)
	}
	if err := os.Setenv("OUTBOX_PREVIOUS", strings.TrimSpace(string(program))); err != nil {
		return fmt.Errorf("name the program of the version before: %w", err)
	}
	return nil
}
