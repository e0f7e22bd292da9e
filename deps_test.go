package outbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies keeps the library light: a service that only emits must not pull in
// a broker, an ORM, a command-line framework or a test library.
func TestDependencies(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"github.com/packfinderz/outbox", "github.com/jackc/", "github.com/google/uuid", "golang.org/x/", "vendor/golang.org/x/",
	}
	for _, pkg := range []string{
		".", "./wire", "./outboxpgx", "./outboxsql", "./pgstore", "./pgstream", "./layouts", "./ops", "./doctor", "./admin", "./webhook", "./handlers", "./inbox", "./inbox/pginbox",
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", pkg, err)
		}
		if (pkg == "." || pkg == "./inbox") && strings.Contains(string(out), "jackc") {
			t.Errorf("%s depends on a database driver", pkg)
		}
		for _, dependency := range strings.Fields(string(out)) {
			first, _, _ := strings.Cut(dependency, "/")
			if !strings.Contains(first, ".") && dependency != "testing" {
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
	list.Env = append(os.Environ(), "GOWORK=off")
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
