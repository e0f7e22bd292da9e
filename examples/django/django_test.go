package main

import (
	"testing"

	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testProject is the project on a database of its own, with the program as it is built now.
func testProject(t *testing.T) *project {
	t.Helper()
	program, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
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

// TestPython runs the project's own tests: with this program, and over HTTP.
func TestPython(t *testing.T) {
	t.Parallel()
	testProject(t).mustManage(t, "test", "--noinput", "-v", "2")
}

// TestChecks has Django look for what it can find without running anything.
func TestChecks(t *testing.T) {
	t.Parallel()
	p := testProject(t)
	p.mustManage(t, "check", "--fail-level", "WARNING")
	p.mustManage(t, "makemigrations", "--check", "--dry-run")
}
