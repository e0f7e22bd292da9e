//go:build unix && !aix && !solaris

package pgserver

// One cluster for several processes: they find the same one, it stays while any of them lives, and it is started anew
// after whatever happened to it.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/packfinderz/outbox/outboxtest/await"
)

// sharedConfig names a shared cluster that only this test uses.
func sharedConfig(t *testing.T, grace time.Duration) Config {
	t.Helper()
	settings := TestSettings()
	settings["application_name"] = fmt.Sprintf("%s %d", t.Name(), os.Getpid())
	return Config{Settings: settings, Shared: true, Grace: grace}
}

func TestSharedByProcesses(t *testing.T) {
	t.Parallel()
	config := sharedConfig(t, 0)
	users := []*child{startChild(t, config), startChild(t, config), startChild(t, config)}
	for _, user := range users {
		user.await()
		if user.childReport != users[0].childReport {
			t.Fatalf("processes have different clusters: %v, %v", user.childReport, users[0].childReport)
		}
	}
	pid := postmasterPID(t, users[0].Folder)
	last := startServer(t, config)
	for _, user := range users {
		user.kill()
	}
	mustQuery(t, last.URL("postgres"), "SELECT 1")
	if err := last.Restart(t.Context(), Fast); err == nil {
		t.Error("a shared server was restarted by one of its users")
	}
	if got := postmasterPID(t, last.hold.folder); got != pid {
		t.Errorf("the server changed from %d to %d", pid, got)
	}
	if err := last.Stop(); err != nil {
		t.Fatal(err)
	}
	assertGone(t, last.hold.folder, pid)
}

func TestGraceBridgesUsers(t *testing.T) {
	t.Parallel()
	config := sharedConfig(t, 4*time.Second)
	first := startServer(t, config)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, config)
	if first.state != second.state {
		t.Error("the cluster did not wait for its next user")
	}
}

// TestAttachWhileEnding has users come and go at odd times with no grace, so that they meet the cluster in all phases of
// its end. Every one of them must get a server that works.
func TestAttachWhileEnding(t *testing.T) {
	t.Parallel()
	const enough = 4 // clusters that have come and gone
	config := sharedConfig(t, 0)
	var users sync.WaitGroup
	var mu sync.Mutex
	seen := map[state]bool{}
	note := func(s state) (more bool) {
		mu.Lock()
		defer mu.Unlock()
		seen[s] = true
		return len(seen) < enough
	}
	for range 2 {
		users.Go(func() {
			for more, deadline := true, time.Now().Add(5*time.Minute); more; {
				server, err := Start(t.Context(), config)
				if err != nil {
					t.Error(err)
					return
				}
				more = note(server.state)
				if _, err := query(t.Context(), server.URL("postgres"), "SELECT 1"); err != nil {
					t.Errorf("a server that was given does not work: %v", err)
				}
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
				if time.Now().After(deadline) {
					t.Error("the cluster does not end between its users")
					return
				}
				<-time.After(rand.N(2 * watchInterval)) // the odd times; nothing is waited for
			}
		})
	}
	users.Wait()
}

func TestSharedStartsAnewAfterKilledKeeper(t *testing.T) {
	t.Parallel()
	config := sharedConfig(t, time.Minute)
	first := startServer(t, config)
	if err := syscall.Kill(first.state.KeeperPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	config.Grace = 0
	var second *Server
	await.Until(t, "a new cluster is there", func() bool {
		second = startServer(t, config)
		return second.state != first.state
	})
	mustQuery(t, second.URL("postgres"), "SELECT 1")
}

func TestEndsWithUserKilledWhileStarting(t *testing.T) {
	t.Parallel()
	config := sharedConfig(t, 0)
	f := folderOf(t, config)
	user := startChild(t, config)
	await.Until(t, "initdb runs", func() bool { _, err := os.Lstat(f.data()); return err == nil })
	user.kill()
	await.Until(t, "the folder is gone", func() bool { return isGone(f) })
}

func TestFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	config := Config{Settings: map[string]string{"shared_buffers": "a lot"}, Shared: true}
	_, err := Start(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers": "a lot"`) {
		t.Errorf("got %v, want the server's complaint about shared_buffers", err)
	}
	if !isGone(folderOf(t, config)) {
		t.Error("the folder is there after a failed start")
	}
}

func TestSharedRefusesForeignFolder(t *testing.T) {
	t.Parallel()
	config := sharedConfig(t, 0)
	f := string(folderOf(t, config))
	if err := os.Symlink(t.TempDir(), f); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(f) }()
	if _, err := Start(t.Context(), config); err == nil {
		t.Error("a cluster was started in a folder that another user could have put there")
	}
}
