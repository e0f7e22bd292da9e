//go:build unix && !aix && !solaris

package pgserver

// The test program in its three roles: a keeper, a child process that uses a cluster until it is killed, and the tests.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/outboxtest/await"
)

const childEnv = "OUTBOX_PGSERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	RunKeeperIfAsked()
	if role := os.Getenv(childEnv); role != "" {
		if err := runChild(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// childReport is what a child tells its parent about its cluster.
type childReport struct {
	Folder folder
	State  state
}

// runChild gets a cluster, tells about it, and keeps it until its input ends.
func runChild(role string) error {
	var config Config
	if err := json.Unmarshal([]byte(role), &config); err != nil {
		return err
	}
	server, err := Start(context.Background(), config)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(childReport{server.hold.folder, server.state}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return server.Stop()
}

type child struct {
	childReport
	t     *testing.T
	cmd   *exec.Cmd
	input io.Closer
	lines *bufio.Reader
}

// startChild starts a child process; await tells when it has its cluster.
func startChild(t *testing.T, config Config) *child {
	t.Helper()
	role, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(role))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, input: input, lines: bufio.NewReader(output)}
	t.Cleanup(c.kill)
	return c
}

func (c *child) await() {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("reading from the child: %v", err)
	}
	if err := json.Unmarshal(line, &c.childReport); err != nil {
		c.t.Fatal(err)
	}
}

// kill is kill -9, and reaps the child.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func startServer(t *testing.T, config Config) *Server {
	t.Helper()
	server, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// query runs statements in a connection of their own and returns the last one's first value, if it has one.
func query(ctx context.Context, url, sql string) (string, error) {
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 || len(results[len(results)-1].Rows) == 0 {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

func mustQuery(t *testing.T, url, sql string) string {
	t.Helper()
	value, err := query(t.Context(), url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func postmasterPID(t *testing.T, f folder) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// folderOf returns where the shared cluster of a configuration is, or would be.
func folderOf(t *testing.T, config Config) folder {
	t.Helper()
	bin, err := findBinaries()
	if err != nil {
		t.Fatal(err)
	}
	return folder(filepath.Join(parentFolder(), sharedName(bin, formatSettings(config.Settings))))
}

func isGone(f folder) bool {
	_, err := os.Lstat(string(f))
	return os.IsNotExist(err)
}

// hasEnded counts a process that only its parent has not noticed to have ended: in containers that can take for ever.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) == syscall.ESRCH || err == nil && strings.Contains(string(stat), ") Z ")
}

func assertGone(t *testing.T, f folder, pid int) {
	t.Helper()
	await.Until(t, "the server has ended", func() bool { return hasEnded(pid) })
	await.Until(t, "the folder is gone", func() bool { return isGone(f) })
}
