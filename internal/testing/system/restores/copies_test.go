//go:build unix

package restores

// Physical copies: transaction ids, snapshots and sequences go with them, so that cursors mean what they meant.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
)

// TestCopies goes on with a stream on a physical copy of its server. Nobody refuses, and nothing is lost. What was
// delivered after the moment of the copy may be delivered again.
func TestCopies(t *testing.T) {
	t.Parallel()
	program := process.Build(t)
	for name, move := range map[string]func(*testing.T, *source) string{
		"basebackup": copied, "point in time": backInTime, "promotion": promoted, "template": template, "pg_upgrade": upgraded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := sharedFolder(t)
			from := newSource(t, program, true, map[string]string{
				"archive_mode": "on", "archive_command": "cp %p " + archive + "/%f", "wal_level": "replica",
			})
			from.archive = archive
			newStage(t, program, move(t, from)).goesOn(from)
		})
	}
}

// sharedFolder is a folder that the server's user, too, may write to. Not the test's own, whose parents it cannot enter.
func sharedFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "outbox-wal-") //nolint:usetesting // as above
	if err == nil {
		err = os.Chmod(folder, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// goesOn has producers and relays go on as if nothing had happened.
func (s *stage) goesOn(from *source) {
	s.Helper()
	w := from.writers.clone()
	unread := make(map[string]map[uuid.UUID]bool)
	for _, subscription := range subscriptions() {
		unread[subscription] = s.unsettled(subscription)
		if len(unread[subscription]) < few {
			s.Fatalf("%s: only %d events are unread", subscription, len(unread[subscription]))
		}
	}
	from.unread = unread // a copy of an earlier moment has settled less
	s.run("stats")
	s.run("list")
	s.run("doctor", "--check", "restored")
	unfinished := w.begin(s.T, s.pool, "unfinished")
	s.resumes(w, unfinished)
	s.Log(s.judge(from, w, new(repaired)))
}

// copied is a base backup of the running server.
func copied(t *testing.T, from *source) string {
	t.Helper()
	return pgtest.Copy(t, from.server).URL("shop")
}

// promoted is a standby that takes over.
func promoted(t *testing.T, from *source) string {
	t.Helper()
	standby := pgtest.Standby(t, from.server, nil)
	from.writers.write(t, from.pool, few)
	from.follows(t, standby)
	if err := from.server.Halt(t.Context(), pgserver.Fast); err != nil {
		t.Fatal(err)
	}
	url := standby.URL("shop")
	pgtest.Exec(t, pgtest.Connect(t, url), `SELECT pg_promote()`)
	return url
}

// follows waits until a standby has what the source has.
func (s *source) follows(t *testing.T, standby *pgserver.Server) {
	t.Helper()
	at := ask[string](s.stage, `SELECT pg_current_wal_insert_lsn()::text`)
	follower := newStage(t, s.program, standby.URL("shop"))
	follower.await("the standby to follow", func() bool {
		return ask[bool](follower, `SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn`, at)
	})
}

// backInTime recovers a base backup from the archive up to a named moment, after which producers wrote and relays
// delivered more, all of which is undone.
func backInTime(t *testing.T, from *source) string {
	t.Helper()
	const moment = "before the mistake"
	server := pgtest.Standby(t, from.server, map[string]string{
		"restore_command": "cp " + from.archive + "/%f %p", "recovery_target_name": moment, "recovery_target_action": "promote",
		"archive_mode": "off",
	})
	from.writers.write(t, from.pool, few)
	kept := from.writers.clone()
	from.exec(`SELECT pg_create_restore_point($1)`, moment)
	from.writers.write(t, from.pool, few)
	for _, subscription := range subscriptions() {
		relay := from.relay(subscription)
		from.await("more to be delivered", func() bool { return from.behind(subscription) == 0 }, relay)
		from.terminate(relay)
	}
	from.exec(`SELECT pg_switch_wal()`)
	from.writers = kept
	restored := newStage(t, from.program, server.URL("shop"))
	restored.await("the end of the recovery", func() bool { return !ask[bool](restored, `SELECT pg_is_in_recovery()`) })
	if n := len(restored.log()); n != len(kept.emitted) {
		t.Fatalf("%d events were recovered, want %d", n, len(kept.emitted))
	}
	return restored.url
}

// template is a copy of the database beside it.
func template(t *testing.T, from *source) string {
	t.Helper()
	from.pool.Reset() // nobody may be connected
	admin := pgtest.Connect(t, from.server.URL("postgres"))
	pgtest.Exec(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shop'`)
	from.await("the last connection to end", func() bool {
		var n int
		if err := admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	pgtest.Exec(t, admin, `CREATE DATABASE copied TEMPLATE shop`)
	return from.server.URL("copied")
}

// upgraded is a new cluster that pg_upgrade has filled. It is of the same version: no other has the program at hand.
// What it does is the same: schemas are dumped and loaded, files are copied, and counters are set.
func upgraded(t *testing.T, from *source) string {
	t.Helper()
	t.Log("from a version to itself: PostgreSQL of another major version is not at hand")
	to := pgtest.Server(t, nil)
	oldData := ask[string](from.stage, `SHOW data_directory`)
	newData := ask[string](newStage(t, from.program, to.URL("postgres")), `SHOW data_directory`)
	for _, server := range []*pgserver.Server{from.server, to} {
		if err := server.Halt(t.Context(), pgserver.Fast); err != nil {
			t.Fatal(err)
		}
	}
	upgrade(t, oldData, newData)
	if err := to.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	return to.URL("shop")
}

// upgrade runs pg_upgrade as the user whose files these are.
func upgrade(t *testing.T, oldData, newData string) {
	t.Helper()
	program, err := pgserver.Program("pg_upgrade")
	if err != nil {
		t.Fatal(err)
	}
	bin, folder := filepath.Dir(program), sharedFolder(t)
	cmd := exec.CommandContext(t.Context(), program, "--old-bindir", bin, "--new-bindir", bin, "--old-datadir", oldData,
		"--new-datadir", newData, "--username", "postgres", "--socketdir", folder,
		"--old-port", freePort(t), "--new-port", freePort(t))
	cmd.Dir = folder
	info, err := os.Stat(newData)
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_upgrade: %v\n%s", err, output)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // it was only to find a port
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// TestRewrites does to the tables what administrators do. It changes neither what is stored nor what it means.
func TestRewrites(t *testing.T) {
	t.Parallel()
	from := newSource(t, process.Build(t), true, nil)
	tables := strings.Fields(ask[string](from.stage, `
		SELECT string_agg(oid::regclass::text, ' ' ORDER BY relname) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE 'outbox%'`))
	for _, table := range tables {
		from.exec(`VACUUM (FREEZE) ` + table)
		from.exec(`VACUUM FULL ` + table)
	}
	from.exec(`CLUSTER outbox_stream_0 USING outbox_stream_0_shard_seq_idx`)
	from.exec(`ALTER TABLE outbox_stream ADD COLUMN note text`)
	if n := ask[int](from.stage, `SELECT count(*) FROM outbox_stream WHERE xmin::text::bigint = 2`); n > 0 {
		t.Errorf("%d rows have lost who wrote them", n)
	}
	// These write every row anew, as pg_repack does. It leaves tables without a primary key alone.
	rewritten := 0
	for _, table := range strings.Fields(ask[string](from.stage, `
		SELECT string_agg(indrelid::regclass::text, ' ') FROM pg_index JOIN pg_class AS c ON c.oid = indrelid
		WHERE indisprimary AND c.relname LIKE 'outbox%' AND c.relnamespace = 'public'::regnamespace`)) {
		from.exec(fmt.Sprintf(`ALTER TABLE %s ADD COLUMN rewritten uuid DEFAULT gen_random_uuid()`, table))
		from.exec(fmt.Sprintf(`ALTER TABLE %s DROP COLUMN rewritten`, table))
		rewritten++
	}
	from.exec(`ALTER TABLE outbox_stream ADD COLUMN rewritten uuid DEFAULT gen_random_uuid()`)
	from.exec(`REINDEX DATABASE shop`)
	if len(tables) == 0 || rewritten == 0 {
		t.Fatalf("%d tables, %d of them written anew", len(tables), rewritten)
	}
	newStage(t, from.program, from.url).goesOn(from)
}
