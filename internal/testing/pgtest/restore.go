package pgtest

// A database that went through a dump.

import (
	"bytes"
	"os/exec"
	"testing"
)

// Restore dumps a database and loads it into a new cluster, where transactions are counted from the beginning. It
// returns the new address; the cluster ends with the test.
func Restore(t testing.TB, from string) string {
	t.Helper()
	dump := Program(t, "pg_dump", nil, "--no-owner", "--dbname", from)
	url := Server(t, nil).URL("postgres")
	Program(t, "psql", dump, "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", url)
	return url
}

// Program runs one of PostgreSQL's programs, which must succeed, and returns what it printed.
func Program(t testing.TB, name string, in []byte, args ...string) []byte {
	t.Helper()
	path := ProgramPath(t, name)
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, problems.Bytes())
	}
	return out.Bytes()
}
