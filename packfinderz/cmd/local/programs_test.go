//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

// serves is a program that runs until it is told to end, and ends with exit code 0. It makes a file when it can be told.
func serves(file string) []string {
	return []string{"sh", "-c", `trap 'kill $!; exit 0' TERM; tail -f /dev/null & touch "$0"; wait`, file}
}

// defenceless is a program that the signal itself ends, as it does one that is told twice.
func defenceless(file string) []string {
	return []string{"sh", "-c", `touch "$0"; exec tail -f /dev/null`, file}
}

// When a program ends, the others are told to end, and it is said which ended and how; not so when all were told to.
func TestRunAll(t *testing.T) {
	t.Parallel()
	limited, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for how, program := range map[string][]string{
		"exit status 3": {"sh", "-c", "exit 3"}, "exit status 0": {"true"}, "no such file or directory": {"bin/none"},
	} {
		var said []string
		err := runAll(limited, [][]string{{"tail", "-f", "/dev/null"}, program}, os.Environ(), func(format string, args ...any) {
			said = append(said, fmt.Sprintf(format, args...))
		})
		if len(said) != 1 || !strings.HasPrefix(said[0], program[0]+" ended: ") || !strings.Contains(said[0], how) {
			t.Errorf("%s: %q is said, and %v", how, said, err)
		}
		var ended *exec.ExitError
		if how == "exit status 3" && (!errors.As(err, &ended) || ended.ExitCode() != 3) {
			t.Errorf("the error is %v", err)
		}
	}

	if limited.Err() != nil {
		t.Error("the others did not end")
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	done := make(chan error)
	go func() {
		done <- runAll(ctx, [][]string{serves(one), defenceless(two)}, os.Environ(), func(format string, args ...any) {
			t.Errorf(format, args...)
		})
	}()
	await.Until(t, "both to run", func() bool { return isThere(one) && isThere(two) })
	stop()
	if err := <-done; err != nil {
		t.Errorf("told to end: %v", err)
	}
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// make run ends when one of the programs does, and says which. It is not parallel, as make builds into one folder.
func TestMakeRunEndsWithAProgram(t *testing.T) { //nolint:paralleltest // see above
	const nobody = "127.0.0.1:1" // the others wait for their servers
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "-C", "../..", "run", "ENV_FILE="+write(t,
		"PACKFINDERZ_API_LISTEN=0.0.0.0:0", // which the api refuses without a secret
		"PACKFINDERZ_DATABASE_URL=postgres://"+nobody+"/none", "PACKFINDERZ_REDIS_URL=redis://"+nobody,
		"PACKFINDERZ_PUBSUB_PROJECT=pf", "PUBSUB_EMULATOR_HOST="+nobody,
		"PACKFINDERZ_WORKER_LISTEN="+backendtest.Address(t), "PACKFINDERZ_PUBLISHER_LISTEN="+backendtest.Address(t)))
	cmd.Env = bare()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // make tells the others
	output, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(output), "local: bin/api ended: exit status 2") {
		t.Errorf("make run: %v\n%s", err, output)
	}
}
