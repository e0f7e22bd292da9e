// Release prepares a release of all modules together, and checks that a stranger can install what is in the working tree.
//
//	go run ./internal/release prepare v0.2.0
//	go run ./internal/release check
//
// See docs/releasing.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	tree, err := openTree(".")
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "prepare":
		return tree.prepare(ctx, args[1], time.Now(), os.Stdout)
	case len(args) == 1 && args[0] == "check":
		return tree.check(ctx, os.Stdout)
	}
	return errors.New("usage: release prepare vX.Y.Z, or release check")
}
