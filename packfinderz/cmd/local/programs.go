package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// runAll runs commands at the same time until ctx ends, or the first of them does. Then it stops the others: a backend
// without one of its programs only seems to run.
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

// runOne runs a command. When it was told to stop, exit code 0 and death by that signal are no errors: a terminal
// signals both processes, and a stopping program may not catch the second signal.
func runOne(ctx context.Context, command, environment []string) error {
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Env = environment
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) } // it finishes what it has begun
	err := program.Run()
	if ctx.Err() == nil || program.ProcessState == nil {
		return err
	}
	status, _ := program.ProcessState.Sys().(syscall.WaitStatus)
	if program.ProcessState.ExitCode() == 0 || status.Signaled() && status.Signal() == syscall.SIGTERM {
		return nil
	}
	return err
}
