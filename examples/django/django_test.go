package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// buildProgram builds the outbox program into a folder of the test.
func buildProgram(t *testing.T) string {
	t.Helper()
	program, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// testProject is the project on a database of its own.
func testProject(t *testing.T, program string) *project {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProject(t.Context(), pgtest.URL(t), program, testserver.Loopback(port))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mustManage runs a command of manage.py that must succeed.
func (p *project) mustManage(t *testing.T, args ...string) {
	t.Helper()
	output, err := p.manage(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(output)
}

// mustServe runs Django until the end of the test.
func (p *project) mustServe(t *testing.T) {
	t.Helper()
	web, err := p.start(io.Discard, "runserver", "--noreload", p.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(web.stop)
	if err := p.awaitListening(t.Context(), web); err != nil {
		t.Fatal(err)
	}
}

// TestPython runs the project's own tests, module by module: with this program, and over HTTP.
func TestPython(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	modules := []string{"admin", "delivery", "emit", "program", "receiver", "signatures", "uuid7", "wake"}
	for _, module := range modules {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			testProject(t, program).mustManage(t, "test", "--noinput", "-v", "2", "common.tests.test_"+module)
		})
	}
	files, err := filepath.Glob(filepath.Join("*", "tests", "test_*.py"))
	if err != nil || len(files) != len(modules) {
		t.Errorf("%d modules are run of %q (%v)", len(modules), files, err)
	}
}

// TestChecks has Django look for what it can find without running anything.
func TestChecks(t *testing.T) {
	t.Parallel()
	p := testProject(t, "outbox") // which nothing here runs
	p.mustManage(t, "check", "--fail-level", "WARNING")
	p.mustManage(t, "makemigrations", "--check", "--dry-run")
	// As in production, where a secret that is missing or misspelt is an error.
	p.environment = slices.DeleteFunc(p.environment, func(variable string) bool { return strings.HasPrefix(variable, "DJANGO_") })
	if _, err := p.manage(t.Context(), "check"); err == nil || !strings.Contains(err.Error(), "set DJANGO_SECRET_KEY") {
		t.Errorf("without a secret key: %v", err)
	}
	p.environment = append(p.environment, "DJANGO_DEBUG=1", "OUTBOX_WEBHOOK_SECRET=whsec_short")
	if _, err := p.manage(t.Context(), "check"); err == nil || !strings.Contains(err.Error(), "common.E001") {
		t.Errorf("with half a secret: %v", err)
	}
}
