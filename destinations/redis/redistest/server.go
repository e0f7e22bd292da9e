// Package redistest starts a private Redis for a test and reads back what arrived in its streams.
package redistest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// Broker is a Redis server of the test's own, which writes every change to disk before it
// answers.
type Broker struct {
	folder   string
	port     int
	settings []string
	process  *testserver.Process
	client   *goredis.Client
}

// New starts a server that ends with the test, with the stream publishertest.Topic ready. The
// settings are those of the server's command line, such as --maxmemory 10mb.
func New(t testing.TB, settings ...string) *Broker {
	t.Helper()
	b := start(t, settings...)
	b.Create(t, publishertest.Topic)
	return b
}

// NewCluster starts a cluster of one node.
func NewCluster(t testing.TB) *Broker {
	t.Helper()
	// By default the nodes talk at 10,000 above the port, where outgoing connections are.
	bus, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
	const slots = 16_384
	if err := b.client.ClusterAddSlotsRange(context.Background(), 0, slots-1).Err(); err != nil {
		t.Fatal(fmt.Errorf("giving the node its slots: %w", err))
	}
	err = b.process.AwaitReady(startPatience, func() error { return b.client.XLen(context.Background(), publishertest.Topic).Err() })
	if err != nil {
		t.Fatal(fmt.Errorf("starting a cluster: %w", err))
	}
	b.Create(t, publishertest.Topic)
	return b
}

func start(t testing.TB, settings ...string) *Broker {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{folder: t.TempDir(), port: port, settings: settings}
	b.client = goredis.NewClient(&goredis.Options{
		Addr: b.Address(), Protocol: 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		if err := b.client.Close(); err != nil {
			t.Error(err)
		}
		b.Stop(t)
	})
	b.Start(t)
	return b
}

// Address is the server's host:port.
func (b *Broker) Address() string { return "127.0.0.1:" + strconv.Itoa(b.port) }

// URL returns the destination for outbox relay --to.
func (b *Broker) URL() string { return "redis://" + b.Address() }

// Client is a client of the server, for all that a test wants to do besides.
func (b *Broker) Client() *goredis.Client { return b.client }

// Start starts the server, at the first time or after a Stop, with the data it had.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not in PATH: run scripts/ensure-redis, or install it (Debian: apt-get install redis-server; macOS: brew install redis)")
	}
	args := append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(b.port), "--dir", b.folder,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always",
	}, b.settings...)
	b.process, err = testserver.Start(exec.Command(program, args...), filepath.Join(b.folder, "redis.log"))
	if err == nil {
		err = b.process.AwaitReady(startPatience, func() error { return b.client.Ping(context.Background()).Err() })
	}
	if err != nil {
		t.Fatal(fmt.Errorf("starting Redis: %w", err))
	}
}

const startPatience = 30 * time.Second

// Stop kills the server.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	if b.process != nil {
		b.process.Kill()
	}
}

// Create makes an empty stream.
func (b *Broker) Create(t testing.TB, stream string) {
	t.Helper()
	// A stream stays when its only entry goes.
	ctx := context.Background()
	id, err := b.client.XAdd(ctx, &goredis.XAddArgs{Stream: stream, Values: []string{"created", "1"}}).Result()
	if err == nil {
		err = b.client.XDel(ctx, stream, id).Err()
	}
	if err != nil {
		t.Fatal(fmt.Errorf("creating the stream %s: %w", stream, err))
	}
}

// Freeze stops the server's process without ending it. The answer lets it go on.
func (b *Broker) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	_, after, _ := strings.Cut(b.client.Info(context.Background(), "server").Val(), "process_id:")
	text, _, _ := strings.Cut(after, "\r\n")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	// The signal takes its time, and the server would answer meanwhile.
	await.Until(t, "Redis to stand still", func() bool {
		state, err := exec.Command("ps", "-o", "stat=", "-p", text).Output()
		return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "T")
	})
	return func() { signal(syscall.SIGCONT) }
}

// Grant makes a user with just these rights, and answers the URL with its name.
func (b *Broker) Grant(t testing.TB, rights string) (url string) {
	t.Helper()
	command := []any{"acl", "setuser", "app", "on", ">s3cret", "-@all"}
	for right := range strings.FieldsSeq(rights) {
		command = append(command, right)
	}
	if err := b.client.Do(context.Background(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	return "redis://app:s3cret@" + b.Address()
}
