//go:build unix

package restores

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
)

// TestBackupPage runs the commands of docs/backup.md as they are written, one after the other. The server's port and
// password are in the environment.
func TestBackupPage(t *testing.T) {
	t.Parallel()
	program := process.Build(t)
	server := pgtest.Server(t, nil)
	admin := pgtest.Connect(t, server.URL("postgres"))
	pgtest.Exec(t, admin, `CREATE ROLE shop_owner`)
	pgtest.Exec(t, admin, `CREATE DATABASE shop OWNER shop_owner`)
	s := newStage(t, program, server.URL("shop"))
	s.run("migrate", "up")
	newWriters(false).write(t, s.pool, few)
	want := len(s.log())

	address, err := url.Parse(server.TCPURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := address.User.Password()
	psql, err := pgserver.Program("psql")
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{filepath.Dir(program), filepath.Dir(psql), os.Getenv("PATH")}, string(filepath.ListSeparator))
	for _, commands := range docpage.Blocks(t, "../../../../docs/backup.md", "sh") {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
		cmd.Dir = s.folder
		cmd.Env = append(os.Environ(), "PATH="+path, "PGUSER="+address.User.Username(), "PGPASSWORD="+password,
			"PGPORT="+address.Port(), "PGSSLMODE=disable")
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s%v\n%s", commands, err, output)
		}
		t.Logf("%s%s", commands, output)
	}
	var owner string
	err = admin.QueryRow(t.Context(), `SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'shop'`).Scan(&owner)
	if err != nil || owner != "shop_owner" {
		t.Errorf("the owner of the database that was lost is %q, %v", owner, err)
	}
	content, err := os.ReadFile(s.file("events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(content), "\n"); got != want {
		t.Errorf("%d events arrived from the restored database, want %d", got, want)
	}
}
