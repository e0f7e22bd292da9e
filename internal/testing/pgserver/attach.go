//go:build unix && !aix && !solaris

package pgserver

// Getting a cluster: attach to the one that runs, or have a keeper start it. Two locks order this among processes (see
// folder.go): with usersLock held, a running cluster cannot end for want of users; with keeperLock held, nobody else
// can start one or remove the folder.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// attachTimeout limits Start: starting takes seconds, so that after this long something is stuck.
	attachTimeout = 2 * time.Minute
	// releaseTimeout limits Stop for the same reason; it is longer than all the keeper's own limits for stopping.
	releaseTimeout = 90 * time.Second
	// retryPause is how long a user waits for a starting or ending cluster before it looks again.
	retryPause = 25 * time.Millisecond
)

// hold is what keeps a cluster alive on behalf of its user.
type hold struct {
	mu     sync.Mutex
	folder folder
	users  *lock       // nil after release
	keeper *keeperLink // nil in shared mode
}

func start(ctx context.Context, config Config) (*Server, error) {
	if os.Getenv(keeperEnv) != "" {
		// Without this check the program would start itself over and over again.
		return nil, errors.New("pgserver: this program must call RunKeeperIfAsked first in its main or TestMain")
	}
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()

	parent := parentFolder()
	sweep(parent)
	request := keeperRequest{Bin: bin, Settings: config.Settings}
	name := privateName()
	if original := cmp.Or(config.StandbyOf, config.CopyOf); original != nil {
		request.Primary, request.Password = original.URL("postgres"), original.state.Password
		request.Follow = config.StandbyOf != nil
		config.Shared = false
	}
	if config.Shared {
		name = sharedName(bin, formatSettings(config.Settings))
		request.Grace = config.Grace
	}
	request.Folder = folder(filepath.Join(parent, name))
	for {
		server, err := attach(ctx, request, config.Shared)
		if err == nil {
			return server, nil
		}
		if !errors.Is(err, errBusy) {
			return nil, fmt.Errorf("pgserver: starting PostgreSQL from %s: %w", bin, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("pgserver: waiting for the cluster in %s: %w", request.Folder, ctx.Err())
		case <-time.After(retryPause):
		}
	}
}

// attach makes one attempt. errBusy means that the cluster is starting, ending, or was just cleared away.
func attach(ctx context.Context, request keeperRequest, shared bool) (*Server, error) {
	f := request.Folder
	if err := f.ensure(); err != nil {
		return nil, err
	}
	users, err := tryLock(f.usersLock(), sharedLock)
	if err != nil {
		return nil, err
	}
	server := &Server{hold: &hold{folder: f, users: users}}
	if running, ok := f.runningState(); ok && users.current() {
		server.state = running
		return server, nil
	}
	if err := server.launch(ctx, request, shared); err != nil {
		users.release()
		return nil, err
	}
	return server, nil
}

// launch starts the cluster in a folder where no server answers.
func (s *Server) launch(ctx context.Context, request keeperRequest, shared bool) error {
	f := request.Folder
	owned, err := tryLock(f.keeperLock(), exclusiveLock)
	if err != nil {
		return err // a keeper lives: it is starting, or about to end
	}
	ownedFile := owned.handOver()
	defer closeQuietly(ownedFile)
	if !s.hold.users.current() {
		return errBusy // the folder was replaced between the two locks
	}
	if _, err := os.Lstat(f.data()); err == nil {
		// Left by a keeper that was killed.
		if err := f.clear(); err != nil {
			return err
		}
		return errBusy
	}
	link, err := startKeeper(request, ownedFile)
	if err != nil {
		return err
	}
	first, err := link.next(ctx)
	switch {
	case errors.Is(err, errKeeperEnded):
		err = fmt.Errorf("%w%s", err, tail("keeper", f.keeperLog()))
		return errors.Join(err, link.awaitEnd(ctx), f.clear())
	case err != nil && ctx.Err() != nil:
		link.close() // the keeper goes on, finds no users, and ends
		return err
	case err != nil:
		return errors.Join(err, link.awaitEnd(ctx))
	}
	s.state = first.State
	if shared {
		link.close()
	} else {
		s.hold.keeper = link
	}
	return nil
}

// command has the keeper of a private cluster do something.
func (h *hold) command(ctx context.Context, command string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.users == nil:
		return fmt.Errorf("pgserver: %s: the server was stopped", command)
	case h.keeper == nil:
		return fmt.Errorf("pgserver: %s: a shared server is not one user's to change", command)
	}
	if err := h.keeper.command(ctx, command); err != nil {
		return fmt.Errorf("pgserver: %s: %w", command, err)
	}
	return nil
}

// release ends the use; the keeper sees it by the lock, or sooner by the end of the link.
func (h *hold) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == nil {
		return nil
	}
	h.users.release()
	h.users = nil
	if h.keeper == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := h.keeper.awaitEnd(ctx); err != nil {
		return fmt.Errorf("pgserver: waiting for PostgreSQL in %s to end: %w", h.folder, err)
	}
	// A keeper that was killed has left its folder.
	if _, err := os.Lstat(string(h.folder)); err == nil {
		if err := h.folder.clearIfDead(); err != nil {
			return fmt.Errorf("pgserver: clearing %s: %w", h.folder, err)
		}
	}
	return nil
}
