//go:build unix && !aix && !solaris

package pgserver

// Locks between processes. flock is used because the kernel releases it on any death of the holder, kill -9 included,
// and because it belongs to the open file, so that a process can hand it to its child.

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errBusy means that a lock is held elsewhere, or that its folder was removed while we took it: try again later.
var errBusy = errors.New("in use by another process")

const (
	sharedLock    = syscall.LOCK_SH
	exclusiveLock = syscall.LOCK_EX
)

// lock is a held lock. It has a bare descriptor, not an os.File, because the garbage collector closes those: a lock
// stays until it is released or the process dies.
type lock struct {
	path string
	fd   int
}

// tryLock takes the lock at path without waiting.
func tryLock(path string, how int) (*lock, error) {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if errors.Is(err, syscall.ENOENT) {
		return nil, errBusy // the folder was removed since it was found
	}
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	l := &lock{path: path, fd: fd}
	if err := flock(fd, how|syscall.LOCK_NB); err != nil {
		l.release()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, fmt.Errorf("taking lock %s: %w", path, err)
	}
	if !l.current() {
		l.release()
		return nil, errBusy
	}
	return l, nil
}

func flock(fd, how int) error {
	for {
		if err := syscall.Flock(fd, how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// current tells whether the locked file is still the one at its path. Folders are removed with the locks in them, and
// a lock on a removed file protects nothing.
func (l *lock) current() bool {
	var held, found syscall.Stat_t
	if syscall.Fstat(l.fd, &held) != nil || syscall.Stat(l.path, &found) != nil {
		return false
	}
	return held.Dev == found.Dev && held.Ino == found.Ino
}

// release gives the lock up. Nothing was written, so that closing has no error worth knowing.
func (l *lock) release() { _ = syscall.Close(l.fd) }

// handOver returns the lock as a file for a child process. The lock is then released when both have closed it.
func (l *lock) handOver() *os.File { return os.NewFile(uintptr(l.fd), l.path) }
