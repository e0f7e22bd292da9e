package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// runAll runs commands beside each other until ctx ends, or the first of them does. Then the others are told to end, too: a backend
// that lacks one of its programs only looks as if it ran.
func runAll(ctx context.Context, commands [][]string, environment []string, say func(format string, args ...any)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		program string
		err     error
	}
	ends := make(chan end)
	for _, command := range commands {
		go func() { ends <- end{command[0], runOne(ctx, command, environment)} }()
	}
	var errs []error
	for range commands {
		ended := <-ends
		errs = append(errs, ended.err)
		if len(commands) == 1 || ctx.Err() != nil {
			continue // it is alone and has said why, or was told to end
		}
		how := "exit status 0"
		if ended.err != nil {
			how = ended.err.Error()
		}
		say("%s ended: %s; its last lines say why. The others end now, too", ended.program, how)
		stop()
	}
	return errors.Join(errs...)
}

// runOne runs a command. It is no error to end with exit code 0 when it was told to.
func runOne(ctx context.Context, command, environment []string) error {
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Env = environment
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	// It finishes what it has begun. A terminal tells both of us; to be told twice does no harm.
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Run(); ctx.Err() == nil || program.ProcessState == nil || program.ProcessState.ExitCode() != 0 {
		return err
	}
	return nil
}
