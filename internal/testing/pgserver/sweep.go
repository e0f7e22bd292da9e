//go:build unix && !aix && !solaris

package pgserver

// Clearing away what killed keepers left behind.

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweep clears every cluster folder of this user in parent that has no living keeper. It only tidies, so that what it
// cannot clear stays for the next sweep.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		f := folder(filepath.Join(parent, entry.Name()))
		if !strings.HasPrefix(entry.Name(), folderPrefix()) || f.verify() != nil {
			continue
		}
		if strings.Contains(entry.Name(), goneMark) {
			_ = os.RemoveAll(string(f))
			continue
		}
		_ = f.clearIfDead()
	}
}

// clearIfDead clears the folder if it has no keeper. A starter that has only just made the folder loses it, notices
// that by its locks, and makes it again.
func (f folder) clearIfDead() error {
	owned, err := tryLock(f.keeperLock(), exclusiveLock)
	if err != nil {
		return err
	}
	defer owned.release()
	return f.clear()
}

// clear ends a server that outlived its keeper, and removes the folder. The caller holds keeperLock.
func (f folder) clear() error {
	if err := f.endOrphan(); err != nil {
		return err
	}
	return f.discard()
}

// endOrphan ends a server whose keeper was killed. Linux has told it to end already, and here it is only awaited. The
// pid in the folder is believed only while a server answers on the folder's own socket: it may belong to somebody else
// by now.
func (f folder) endOrphan() error {
	sockets, err := filepath.Glob(filepath.Join(f.sockets(), ".s.PGSQL.*[0-9]"))
	if err != nil {
		return fmt.Errorf("look for the sockets of a server without a keeper: %w", err)
	}
	if len(sockets) == 0 {
		return nil
	}
	for range 200 {
		if !answers(sockets[0]) {
			return nil
		}
		if text, err := os.ReadFile(filepath.Join(f.data(), "postmaster.pid")); err == nil {
			first, _, _ := strings.Cut(string(text), "\n")
			if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("a server without a keeper does not end: %s", sockets[0])
}
