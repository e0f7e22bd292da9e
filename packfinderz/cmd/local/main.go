// Command local runs a program of the backend on a developer's machine, with the variables of a file such as .env, and gives
// it what neither these nor the environment name: a private PostgreSQL with the backend's tables, and a Pub/Sub server with its
// topics. Both are gone when the program ends.
//
//	local -env .env bin/outbox-publisher
//
// It is a program of its own so that what is deployed has neither in it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/packfinderz/outbox/outboxtest/testdb"
)

func main() {
	testdb.RunKeeperIfAsked() // for the private PostgreSQL
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	file := flag.String("env", "", "a file of variables, which need not be there")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "local: which program? For example: local bin/outbox-publisher")
		return 2
	}
	err := serve(ctx, *file, flag.Args())
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return max(ended.ExitCode(), 1) // it has said why
	}
	fmt.Fprintln(os.Stderr, "local:", err)
	return 1
}

// serve runs the command between the start and the end of the servers.
func serve(ctx context.Context, file string, command []string) (err error) {
	variables, err := dotenv(file)
	if err != nil {
		return err
	}
	found, err := lend(ctx, over(os.LookupEnv, variables), func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "local: "+format+"\n", args...)
	})
	defer func() { err = errors.Join(err, found.close()) }()
	if err != nil {
		return err
	}
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Env = append(os.Environ(), found.environment...)
	for name, value := range variables {
		if _, set := os.LookupEnv(name); !set {
			program.Env = append(program.Env, name+"="+value)
		}
	}
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	// It finishes what it has begun. A terminal tells both of us; to be told twice does no harm.
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Run(); ctx.Err() == nil || program.ProcessState == nil || program.ProcessState.ExitCode() != 0 {
		return err
	}
	return nil // it was told to end, and did
}
