//go:build !unix || aix || solaris

package pgserver

// Systems without flock: the package compiles, so that programs with a demo do, and says clearly that it cannot work.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

type hold struct{}

func start(context.Context, Config) (*Server, error) {
	return nil, fmt.Errorf("pgserver: starting a private PostgreSQL on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func (*hold) command(context.Context, string) error { return errors.ErrUnsupported }

func (*hold) release() error { return errors.ErrUnsupported }

// RunKeeperIfAsked returns at once: on this system there are no keepers.
func RunKeeperIfAsked() {}
