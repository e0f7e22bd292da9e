package doctor_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/doctor"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/internal/testserver"
	"github.com/packfinderz/outbox/pgstream"
)

// TestPooler goes through a real PgBouncer, in transaction and in session mode.
func TestPooler(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	direct := pgtest.Connect(t, address)
	modkit, stream := newTable(t, direct, "modkit"), newStream(t, direct, pgstream.Shape{})
	transaction := pgtest.Connect(t, pgbouncer(t, address, "transaction"))
	modkit.pool, stream.pool = transaction, transaction
	modkit.finds(t, "notifications", doctor.Warning, "notifications do not arrive", "--notify=false")
	stream.finds(t, "notifications", doctor.Problem, "their commits would not wait for the disk", "session mode")
	modkit.pool = pgtest.Connect(t, pgbouncer(t, address, "session"))
	modkit.isWell(t, "notifications")
}

// pgbouncer starts one in front of a database and returns the address through it.
func pgbouncer(t *testing.T, database, mode string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if errors.Is(err, exec.ErrNotFound) {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // not everybody has it in PATH
	}
	if err != nil {
		t.Fatal("pgbouncer is not there: run scripts/ensure-pgbouncer, or install it (Debian: apt-get install pgbouncer; " +
			"macOS: brew install pgbouncer)")
	}
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	behind, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	password := ""
	if behind.Password != "" {
		password = " password=" + behind.Password
	}
	settings := fmt.Sprintf(`[databases]
shop = host=%s port=%d dbname=%s user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
`, behind.Host, behind.Port, behind.Database, behind.User, password, port, mode)
	if os.Geteuid() == 0 {
		settings += "user = postgres\n" // it does not run as root either
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := testserver.Start(exec.Command(program, file), filepath.Join(folder, "pgbouncer.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	through := url.URL{Scheme: "postgres", User: url.User("shop"), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/shop", RawQuery: "sslmode=disable"}
	if err := process.AwaitReady(30*time.Second, func() error {
		conn, err := pgx.Connect(t.Context(), through.String())
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return through.String()
}
