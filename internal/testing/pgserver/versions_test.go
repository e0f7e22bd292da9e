//go:build unix && !aix && !solaris

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeInstallation makes a folder with programs that only know their version.
func fakeInstallation(t *testing.T, dir, version string, programs ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVersionFound asks for a version that scripts/ensure-postgres has installed, from a folder further down.
func TestVersionFound(t *testing.T) {
	root := t.TempDir()
	want := filepath.Join(root, ".tools", "postgres-99", "bin")
	fakeInstallation(t, want, "99.1", "initdb", "postgres")
	below := filepath.Join(root, "some", "package")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv(binEnv, "")
	t.Setenv(versionEnv, "99")
	if got, err := findBinaries(); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if release, err := Release(); err != nil || release != "99.1" {
		t.Errorf("got release %q, %v", release, err)
	}
	if path, err := Program("pg_dump"); !errors.Is(err, ErrNoProgram) {
		t.Errorf("got %q, %v, want ErrNoProgram: an older pg_dump refuses a newer server", path, err)
	}
	fakeInstallation(t, want, "99.1", "pg_dump")
	if got, err := Program("pg_dump"); err != nil || got != filepath.Join(want, "pg_dump") {
		t.Errorf("got %q, %v, want the program beside the server", got, err)
	}
}

// TestVersionMissing must not fall back to another version.
func TestVersionMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(binEnv, "")
	for version, want := range map[string]string{"98": "run scripts/ensure-postgres 98", "newest": "not a major version", "-1": "not a major version"} {
		t.Setenv(versionEnv, version)
		if got, err := findBinaries(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want an error with %q", version, got, err, want)
		}
	}
}

// TestOlderServersClient finds a client program of a newer version for a server that has none.
func TestOlderServersClient(t *testing.T) {
	t.Setenv(binEnv, "")
	t.Setenv(versionEnv, "")
	if _, err := Program("pg_dump"); err != nil {
		t.Fatal(err)
	}
	older := t.TempDir()
	fakeInstallation(t, older, "9.6", "initdb", "postgres")
	t.Setenv(binEnv, older)
	if path, err := Program("pg_dump"); err != nil {
		t.Errorf("got %q, %v, want a newer pg_dump", path, err)
	}
}

func TestParseMajor(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{
		"pg_dump (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n": 15, "postgres (PostgreSQL) 18beta1": 18,
		"postgres (PostgreSQL) ": 0, "postgres 17": 0, "": 0,
	} {
		if got, err := parseMajor(answer); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v, want %d", answer, got, err, want)
		}
	}
}
