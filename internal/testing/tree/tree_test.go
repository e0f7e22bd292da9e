// Package tree_test holds the rules about what may import what.
package tree_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// root is the repository.
const root = "../../.."

// TestShipped keeps test code, and what only tests need, out of the program that people run.
func TestShipped(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/outbox")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -deps ./cmd/outbox: %v", err)
	}
	for _, dependency := range strings.Fields(string(out)) {
		for _, test := range []string{"internal/testing/", "outboxtest", "nats-server", "kfake", "pstest", "chromedp", "goleak", "rapid"} {
			if strings.Contains(dependency, test) {
				t.Errorf("the outbox program links %s", dependency)
			}
		}
		if isTesting(dependency) {
			t.Errorf("the outbox program links %s", dependency)
		}
	}
}

// isTesting reports whether a package is the standard library's for tests.
func isTesting(dependency string) bool {
	return dependency == "testing" || strings.HasPrefix(dependency, "testing/")
}

// TestDemo keeps the first thing that people try quick to build: it has a broker of its own, and no cloud's SDK, ORM or
// command-line framework.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"./examples/demo", "./examples/quickstart"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", program)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", program, err)
		}
		for _, heavy := range []string{
			"cloud.google.com", "google.golang.org", "aws", "azure", "gocloud.dev", "twmb/", "rabbitmq", "redis", "gorm.io", "spf13", "goose",
		} {
			if strings.Contains(strings.ToLower(string(out)), heavy) {
				t.Errorf("%s links %s", program, heavy)
			}
		}
	}
}

// TestDependencies keeps the library light: a service that only emits must not pull in
// a broker, an ORM, a command-line framework or a test library.
func TestDependencies(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"github.com/packfinderz/outbox", "github.com/jackc/", "github.com/google/uuid", "golang.org/x/", "vendor/golang.org/x/",
	}
	for _, pkg := range []string{
		".", "./outboxpgx", "./outboxsql", "./pgstore", "./pgstream", "./layouts", "./ops", "./ops/doctor", "./admin",
		"./destinations/wire", "./destinations/webhook", "./destinations/handlers", "./consume", "./consume/inbox", "./consume/inbox/pginbox",
	} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", pkg, err)
		}
		if (pkg == "." || pkg == "./consume/inbox") && strings.Contains(string(out), "jackc") {
			t.Errorf("%s depends on a database driver", pkg)
		}
		for _, dependency := range strings.Fields(string(out)) {
			first, _, _ := strings.Cut(dependency, "/")
			if !strings.Contains(first, ".") && !isTesting(dependency) {
				continue // the standard library
			}
			if !hasPrefix(dependency, allowed) {
				t.Errorf("%s depends on %s", pkg, dependency)
			}
		}
	}
}

// TestModules keeps the brokers' SDKs, and what else is heavy, out of the root module.
func TestModules(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "all")
	list.Dir, list.Env = root, append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -m all: %v", err)
	}
	for _, heavy := range []string{
		"nats-io", "twmb/", "cloud.google.com", "google.golang.org", "rabbitmq", "redis", "gocloud.dev", "aws", "azure", "gorm.io", "spf13", "goose", "chromedp",
	} {
		if strings.Contains(strings.ToLower(string(out)), heavy) {
			t.Errorf("the root module needs %s:\n%s", heavy, out)
		}
	}
}

func hasPrefix(s string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
