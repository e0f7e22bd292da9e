// Matrix runs the tests that talk to PostgreSQL on several of its major versions, one after the other, and prints what
// came of it in a table. Tests that a version leaves out are listed: none is skipped in silence.
//
//	go run ./internal/testing/matrix                      # 14 to 18, everything
//	go run ./internal/testing/matrix -areas stream 14 18  # some of it
//
// scripts/ensure-postgres VERSION installs what is missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

// versionEnv is what internal/testing/pgserver takes its version from.
const versionEnv = "OUTBOX_POSTGRES"

// area is a part of the code, and the packages that test it.
type area struct {
	name     string
	packages []string
}

func areas() []area {
	return []area{
		{"emit", []string{"./internal/emit", "./outboxpgx", "./outboxsql", "./outboxgorm"}},
		{"stores", []string{".", "./pgstore/...", "./layouts/...", "./internal/testing/relays", "./consume/inbox/pginbox"}},
		{"stream", []string{"./pgstream/..."}},
		{"ops", []string{"./ops/..."}},
		{"chaos", []string{"./internal/testing/system/chaos"}},
	}
}

func versions() []string { return []string{"14", "15", "16", "17", "18"} }

func main() {
	some := flag.String("areas", "", "which areas to test, with spaces between them (default all)")
	pattern := flag.String("run", "", "which tests to run, as of go test (default all)")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: matrix [-areas 'emit stores stream ops chaos'] [-run pattern] [version ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	chosen, err := choose(*some)
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(2)
	}
	majors := flag.Args()
	if len(majors) == 0 {
		majors = versions()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, majors, chosen, *pattern)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// choose finds areas by their names; no name is all of them.
func choose(names string) ([]area, error) {
	if strings.TrimSpace(names) == "" {
		return areas(), nil
	}
	var chosen []area
	for _, name := range strings.Fields(names) {
		found := false
		for _, a := range areas() {
			if a.name == name {
				chosen, found = append(chosen, a), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no area %q", name)
		}
	}
	return chosen, nil
}

func run(ctx context.Context, majors []string, chosen []area, pattern string) error {
	rows := make([]row, 0, len(majors))
	for _, major := range majors {
		r, err := test(ctx, major, chosen, pattern)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	table, err := formatTable(chosen, rows)
	if err != nil {
		return err
	}
	fmt.Print("\n", table)
	for i := range rows {
		if !rows[i].ok() {
			return errors.New("some tests failed")
		}
	}
	return nil
}

// test runs the areas on one version, each by itself, so that the times mean something.
func test(ctx context.Context, major string, chosen []area, pattern string) (row, error) {
	ensure := exec.CommandContext(ctx, "scripts/ensure-postgres", major)
	ensure.Stderr = os.Stderr
	if err := ensure.Run(); err != nil {
		return row{}, fmt.Errorf("make sure of PostgreSQL %s: %w", major, err)
	}
	if err := os.Setenv(versionEnv, major); err != nil {
		return row{}, fmt.Errorf("ask for PostgreSQL %s: %w", major, err)
	}
	release, err := pgserver.Release()
	if err != nil {
		return row{}, err
	}
	r := row{release: release}
	for _, a := range chosen {
		begun := time.Now()
		// Two packages at a time: chaos and plans want some of the machine for themselves.
		args := append([]string{"test", "-json", "-count=1", "-p", "2", "-run", pattern}, a.packages...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Stderr = os.Stderr
		output, err := cmd.StdoutPipe()
		if err != nil {
			return row{}, fmt.Errorf("run the tests of %s: %w", a.name, err)
		}
		if err := cmd.Start(); err != nil {
			return row{}, fmt.Errorf("run the tests of %s: %w", a.name, err)
		}
		got, err := readResult(output)
		got.failed = errors.Join(err, cmd.Wait()) != nil || got.failed
		if ctx.Err() != nil {
			return row{}, errors.New("interrupted")
		}
		got.took = time.Since(begun)
		fmt.Printf("PostgreSQL %s: %s %s\n", release, a.name, got.String())
		if got.failed {
			fmt.Print(got.output)
		}
		r.results = append(r.results, got)
	}
	return r, nil
}
