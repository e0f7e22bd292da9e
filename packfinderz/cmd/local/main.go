// Command local runs programs of the backend on a developer's machine, with the variables of a file such as .env. It
// starts the servers that these variables do not name: a private PostgreSQL with the backend's tables, and a Pub/Sub
// server with its topics. Both end with the programs. The deployed programs contain neither.
//
//	local -env .env bin/outbox-publisher cleanup       a program, with its arguments
//	local -env .env -each bin/api bin/outbox-publisher several programs; when one ends, so do the others
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
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
	each := flag.Bool("each", false, "every argument is a program: run all, until the first of them ends")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "local: which program? For example: local bin/outbox-publisher")
		return 2
	}
	commands := [][]string{flag.Args()}
	if *each {
		commands = slices.Collect(slices.Chunk(flag.Args(), 1))
	}
	err := serve(ctx, *file, commands)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return max(ended.ExitCode(), 1) // it has said why
	}
	say("%v", err)
	return 1
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "local: "+format+"\n", args...) }

// serve runs the commands between the start and the end of the servers.
func serve(ctx context.Context, file string, commands [][]string) (err error) {
	variables, err := dotenv(file)
	if err != nil {
		return err
	}
	found, err := lend(ctx, over(os.LookupEnv, variables), say)
	defer func() { err = errors.Join(err, found.close()) }()
	if err != nil {
		return err
	}
	environment := append(os.Environ(), found.environment...)
	for name, value := range variables {
		if _, set := os.LookupEnv(name); !set {
			environment = append(environment, name+"="+value)
		}
	}
	if len(commands) > 1 { // only one of them could listen there
		environment = slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "PORT=") })
	}
	return runAll(ctx, commands, environment, say)
}
