//go:build unix && !aix && !solaris

package pgserver

import (
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// TestPortTaken runs a cluster without a keeper, to put a stranger on its port.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread() // as the keeper does: the server ends with the thread that started it
	defer runtime.UnlockOSThread()
	f, owned := ownFolder(t)
	defer owned.release()
	bin, err := findBinaries()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{folder: f, bin: bin}
	defer func() {
		c.halt(Fast)
		if err := f.discard(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.create(t.Context(), TestSettings()); err != nil {
		t.Fatal(err)
	}
	c.halt(Fast)
	stranger, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(c.port))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.resume(t.Context()); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want errPortTaken", err)
	}
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.resume(t.Context()); err != nil {
		t.Errorf("after the port is free again: %v", err)
	}
}

// ownFolder makes a folder and takes its lock. Before it is taken, the sweep of another test
// may find the folder without an owner and remove it; then another is made.
func ownFolder(t *testing.T) (folder, *lock) {
	t.Helper()
	for {
		f := folder(filepath.Join(parentFolder(), privateName()))
		err := f.ensure()
		if err == nil {
			var owned *lock
			if owned, err = tryLock(f.keeperLock(), exclusiveLock); err == nil {
				return f, owned
			}
		}
		if !errors.Is(err, errBusy) {
			t.Fatal(err)
		}
	}
}
