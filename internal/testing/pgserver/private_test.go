//go:build unix && !aix && !solaris

package pgserver

// A cluster of one's own: it works, it can be restarted, and it ends with its user, however that ends.

import (
	"context"
	"errors"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/outboxtest/await"
)

func TestStartsAndStops(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{Settings: TestSettings()})
	if got := mustQuery(t, server.URL("postgres"), "SHOW fsync"); got != "off" {
		t.Errorf("fsync = %s, want off", got)
	}
	if got := mustQuery(t, server.TCPURL("template1"), "SELECT current_database()"); got != "template1" {
		t.Errorf("database = %s, want template1", got)
	}
	if got := mustQuery(t, server.URL("postgres"), "SHOW server_encoding"); got != "UTF8" {
		t.Errorf("encoding = %s, want UTF8", got)
	}
	info, err := os.Stat(server.hold.folder.sockets())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("socket folder: mode %v, error %v, want 0700", info.Mode(), err)
	}
	pid := postmasterPID(t, server.hold.folder)
	for range 2 {
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if !isGone(server.hold.folder) || !hasEnded(pid) {
		t.Error("the server or its folder is there after Stop")
	}
	if err := server.Restart(t.Context(), Fast); err == nil {
		t.Error("a stopped server was restarted")
	}
}

func TestTCPRefusesWrongPassword(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{Settings: TestSettings()})
	address, err := url.Parse(server.TCPURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []*url.Userinfo{url.UserPassword(superuser, "wrong"), url.User(superuser)} {
		address.User = user
		_, err := query(t.Context(), address.String(), "SELECT 1")
		var refused *pgconn.PgError
		if user.String() == superuser {
			if err == nil {
				t.Error("connected without a password")
			}
		} else if !errors.As(err, &refused) || refused.Code != "28P01" {
			t.Errorf("wrong password: got %v, want error 28P01", err)
		}
	}
}

func TestRestartKeepsData(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{Settings: TestSettings()})
	address := server.TCPURL("postgres")
	mustQuery(t, address, "CREATE TABLE kept AS SELECT 1")
	for _, mode := range []Mode{Immediate, Fast} {
		// A crash may lose what was not flushed, because TestSettings turns waiting for the flush off.
		mustQuery(t, address, "CHECKPOINT")
		before := postmasterPID(t, server.hold.folder)
		if err := server.Restart(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		if after := postmasterPID(t, server.hold.folder); after == before {
			t.Errorf("%s: the server was not restarted", mode)
		}
		if got := mustQuery(t, address, "SELECT count(*) FROM kept"); got != "1" {
			t.Errorf("%s: %s rows, want 1", mode, got)
		}
	}
	if err := server.Restart(t.Context(), "gently"); err == nil {
		t.Error("an unknown mode was taken")
	}
}

func TestHaltAndResume(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{Settings: TestSettings()})
	if err := server.Halt(t.Context(), Immediate); err != nil {
		t.Fatal(err)
	}
	if _, err := query(t.Context(), server.URL("postgres"), "SELECT 1"); err == nil {
		t.Error("a halted server answers")
	}
	// A caller that gives up must not make the next one take the answer that it did not wait for.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Resume(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := server.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustQuery(t, server.URL("postgres"), "SELECT 1")
	if err := server.Halt(t.Context(), Fast); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stopping a halted server: %v", err)
	}
}

func TestEndsWithKilledUser(t *testing.T) {
	t.Parallel()
	user := startChild(t, Config{Settings: TestSettings()})
	user.await()
	pid := postmasterPID(t, user.Folder)
	user.kill()
	assertGone(t, user.Folder, pid)
}

func TestEndsWithKilledKeeper(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{Settings: TestSettings()})
	pid := postmasterPID(t, server.hold.folder)
	if err := syscall.Kill(server.state.KeeperPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := server.Halt(t.Context(), Fast); err == nil {
		t.Error("a killed keeper has answered")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	assertGone(t, server.hold.folder, pid)
}

func TestEndsWithDeadServer(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{Settings: TestSettings()})
	if err := syscall.Kill(postmasterPID(t, server.hold.folder), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the folder is gone", func() bool { return isGone(server.hold.folder) })
}

func TestSweepClearsWhatKilledKeepersLeft(t *testing.T) {
	t.Parallel()
	user := startChild(t, Config{Settings: TestSettings()})
	user.await()
	pid := postmasterPID(t, user.Folder)
	if err := syscall.Kill(user.State.KeeperPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	user.kill()
	await.Until(t, "a sweep clears the folder", func() bool { sweep(parentFolder()); return isGone(user.Folder) })
	await.Until(t, "the server has ended", func() bool { return hasEnded(pid) })
}

// TestStandbyFollows writes on a server and reads on its standby.
func TestStandbyFollows(t *testing.T) {
	t.Parallel()
	primary := startServer(t, Config{Settings: TestSettings()})
	mustQuery(t, primary.URL("postgres"), "SELECT 'before' AS word INTO words")
	standby := startServer(t, Config{StandbyOf: primary, Settings: map[string]string{"cluster_name": "second"}})
	mustQuery(t, primary.URL("postgres"), "UPDATE words SET word = 'after'")
	for _, address := range []string{standby.URL("postgres"), standby.TCPURL("postgres")} {
		await.Until(t, "the standby to follow", func() bool { return mustQuery(t, address, "SELECT word FROM words") == "after" })
	}
	if got := mustQuery(t, primary.URL("postgres"), "SELECT application_name FROM pg_stat_replication"); got != "second" {
		t.Errorf("the primary's standby is %q", got)
	}
}
