//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// makes runs a target of make to its end.
func makes(t *testing.T, target string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), "make", "-C", "../..", target).CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, output)
	}
}

// On a bare clone make starts the publisher on servers of its own, and says so. They end with it.
func TestMakeRunOutboxPublisher(t *testing.T) {
	t.Parallel()
	makes(t, "build")
	address, log := backendtest.Address(t), filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("make", "-C", "../..", "run-outbox-publisher", "ENV_FILE=/dev/null") // a developer's own does not count
	cmd.Env = append(bare(), "PACKFINDERZ_PUBLISHER_LISTEN="+address)
	process, err := testserver.Start(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	await.Until(t, "the publisher to be ready", func() bool { return backendtest.Request(t, "GET", "http://"+address+"/readyz", "") == 200 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // make tells the others
		t.Fatal(err)
	}
	output := func() string {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	await.Until(t, "the publisher to end", func() bool { return strings.Contains(output(), "relay stopped") })
	for _, words := range []string{"this is a private PostgreSQL", "this is a Pub/Sub server", "psql '", `"msg":"relay started"`} {
		if !strings.Contains(output(), words) {
			t.Errorf("%q is not among\n%s", words, output())
		}
	}
}

// bare is the environment with nothing of the backend in it.
func bare() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "PACKFINDERZ_") || slices.Contains([]string{"DATABASE_URL", "PUBSUB_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT"}, name)
	})
}

// What the environment names is not lent, and left alone.
func TestNothingToLend(t *testing.T) {
	t.Parallel()
	said := 0
	lent, err := lend(t.Context(), backendtest.Lookup(map[string]string{"DATABASE_URL": "postgres://db", "GOOGLE_CLOUD_PROJECT": "pf"}),
		func(string, ...any) { said++ })
	if err != nil || said != 0 || len(lent.environment) != 0 {
		t.Errorf("lent were %q (%v)", lent.environment, err)
	}
	if err := lent.close(); err != nil {
		t.Error(err)
	}
}
