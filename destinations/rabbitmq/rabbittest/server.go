// Package rabbittest starts a private RabbitMQ for a test and reads back what arrived in its queues.
package rabbittest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packfinderz/outbox/outboxtest/testserver"
)

const startPatience = 2 * time.Minute

// server is a node of its own: no data, port, cookie or name is shared with another on this machine.
type server struct {
	folder         string
	port, distPort int
	epmdPort       int
	epmd           *testserver.Process
	node           *testserver.Process
	shell          *shell
	vhosts         atomic.Int32
}

// newServer starts a server that ends with the test. The settings are lines of rabbitmq.conf.
func newServer(t testing.TB, settings []string) *server {
	t.Helper()
	s := &server{folder: t.TempDir()}
	for _, port := range []*int{&s.port, &s.distPort, &s.epmdPort} {
		var err error
		if *port, err = testserver.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	conf := append([]string{
		"listeners.tcp.1 = 127.0.0.1:" + strconv.Itoa(s.port),
		"log.console = false", "log.file = " + filepath.Join(s.folder, "rabbitmq.log"), "log.file.level = warning",
		// A full disk is not what is tested here, unless a test says so.
		"disk_free_limit.absolute = 1MB",
	}, settings...)
	s.write(t, "rabbitmq.conf", strings.Join(conf, "\n")+"\n")
	s.write(t, "enabled_plugins", "[].\n")
	t.Cleanup(s.kill)
	s.startEpmd(t)
	s.start(t)
	return s
}

func (s *server) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startEpmd starts Erlang's name server, because the node would start one that outlives it.
func (s *server) startEpmd(t testing.TB) {
	t.Helper()
	program, err := exec.LookPath("epmd")
	if err != nil {
		t.Fatal(hint)
	}
	s.epmd, err = testserver.Start(exec.Command(program, "-port", strconv.Itoa(s.epmdPort), "-address", "127.0.0.1"), s.log())
	if err == nil {
		err = s.epmd.AwaitReady(startPatience, func() error { return dial(s.epmdPort) })
	}
	if err != nil {
		t.Fatal(fmt.Errorf("starting epmd: %w", err))
	}
}

// start starts the node, at the first time or after a kill, and waits until it takes connections.
func (s *server) start(t testing.TB) {
	t.Helper()
	program := program()
	if program == "" {
		t.Fatal(hint)
	}
	cmd := exec.Command(program)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), s.environment()...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.shell = newShell(stdin, stdout)
	if s.node, err = testserver.Start(cmd, s.log()); err == nil {
		err = s.node.AwaitReady(startPatience, func() error { return dial(s.port) })
	}
	if err == nil {
		err = s.shell.eval("rabbit:await_startup()")
	}
	if err != nil {
		t.Fatal(fmt.Errorf("starting RabbitMQ: %w", err))
	}
}

func (s *server) environment() []string {
	in := func(name string) string { return filepath.Join(s.folder, name) }
	return []string{
		"HOME=" + s.folder,
		"ERL_EPMD_PORT=" + strconv.Itoa(s.epmdPort), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=outbox@localhost", "RABBITMQ_DIST_PORT=" + strconv.Itoa(s.distPort),
		"RABBITMQ_MNESIA_BASE=" + in("data"), "RABBITMQ_LOG_BASE=" + s.folder, "RABBITMQ_PID_FILE=" + in("pid"),
		"RABBITMQ_CONFIG_FILE=" + in("rabbitmq.conf"), "RABBITMQ_ADVANCED_CONFIG_FILE=" + in("none.config"),
		"RABBITMQ_CONF_ENV_FILE=" + in("none.conf"), "RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"),
		"RABBITMQ_SCHEMA_DIR=" + in("schema"), "RABBITMQ_GENERATED_CONFIG_DIR=" + in("generated"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		// The node is our own child then, and reads commands from its standard input, at the end of
		// which it ends: on every system it goes when we go.
		"RABBITMQ_ALLOW_INPUT=1",
	}
}

func (s *server) log() string { return filepath.Join(s.folder, "output.log") }

// kill ends the node and epmd.
func (s *server) kill() {
	for _, process := range []*testserver.Process{s.node, s.epmd} {
		if process != nil {
			process.Kill()
		}
	}
}

const hint = "there is no RabbitMQ: run scripts/ensure-rabbitmq, or install it (Debian: apt-get install rabbitmq-server; macOS: brew install rabbitmq)"

// program is the server's own script. What Debian has in PATH is a wrapper that runs it as another
// user.
func program() string {
	places := []string{
		"/usr/lib/rabbitmq/bin/rabbitmq-server",
		"/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server", "/usr/local/opt/rabbitmq/sbin/rabbitmq-server",
	}
	if found, err := exec.LookPath("rabbitmq-server"); err == nil {
		places = append(places, found)
	}
	for _, place := range places {
		target, err := filepath.EvalSymlinks(place)
		if err == nil && filepath.Base(target) == "rabbitmq-server" {
			return target
		}
	}
	return ""
}

func dial(port int) error {
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	return errors.Join(err, closeConn(conn))
}

func closeConn(conn net.Conn) error {
	if conn == nil {
		return nil
	}
	return conn.Close()
}
