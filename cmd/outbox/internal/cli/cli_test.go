package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	// The Pub/Sub client brings a library that starts a goroutine when it is loaded.
	pgtest.Main(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// result is what a person, or a script, sees of one run.
type result struct {
	code     int
	out, err string
}

// run runs one command line as the program would.
func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	// A relay that should have been refused would run for ever.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	code := cli.Run(ctx, args, cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errOut})
	return result{code: code, out: out.String(), err: errOut.String()}
}

// ok runs a command line that must succeed and returns what it printed.
func ok(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	got := run(t, stdin, args...)
	if got.code != 0 {
		t.Fatalf("outbox %s: exit code %d: %s", strings.Join(args, " "), got.code, got.err)
	}
	return got.out
}

// refused runs a command line that must exit with 2 and one line of explanation.
func refused(t *testing.T, words, stdin string, args ...string) {
	t.Helper()
	got := run(t, stdin, args...)
	if got.code != 2 || !strings.Contains(got.err, words) || strings.Count(got.err, "\n") != 1 {
		t.Errorf("outbox %s: exit code %d, %q; want 2 and one line with %q", strings.Join(args, " "), got.code, got.err, words)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "migrate", "migrate up", "migrate down", "migrate status", "layouts", "emit", "relay", "drain", "purge", "stats", "retry",
		"list", "show", "top", "hold", "release", "audit", "console", "console user", "console token",
		"subscriptions", "subscriptions create", "subscriptions list", "subscriptions drop", "replay", "repair", "doctor", "demo", "version"} {
		help := ok(t, "", append(strings.Fields(command), "--help")...)
		if !strings.Contains(help, "Usage:") {
			t.Errorf("outbox %s --help prints %q", command, help)
		}
	}
	if got := ok(t, "", "version"); !strings.HasPrefix(got, "outbox ") {
		t.Errorf("version prints %q", got)
	}
	if got := ok(t, "", "version", "--json"); !strings.Contains(got, `"version":`) {
		t.Errorf("version --json prints %q", got)
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for words, args := range map[string]string{
		"unknown command":                  "frobnicate",
		"unknown flag":                     "emit --frobnicate",
		"up, down, status or print":        "migrate",
		"--layout is empty":                "migrate up --from postgres://localhost/x --layout=",
		"there is no layout":               "migrate up --from postgres://localhost/x --layout nope",
		"no such file":                     "migrate up --from postgres://localhost/x --layout ./nope.yaml",
		"--from is missing":                "migrate up --layout modkit --from=",
		"cannot be read":                   "migrate up --layout modkit --from postgres://user:hunter2@host:port/x",
		"cannot reach the database":        "migrate up --layout modkit --from postgres://user:hunter2@127.0.0.1:1/x",
		"PostgreSQL cuts names":            "migrate up --from postgres://localhost/x --layout modkit --table " + strings.Repeat("x", 64),
		"needs --payload":                  "emit --layout modkit --from postgres://localhost/x --topic t",
		"not a UUID":                       "emit --layout modkit --from postgres://localhost/x --payload {} --id 7",
		"--not-before":                     "emit --layout modkit --from postgres://localhost/x --payload {} --not-before soon",
		"no such file or directory":        "emit --layout modkit --from postgres://localhost/x --payload @/nowhere",
		"MaxPayload":                       "emit --layout modkit --from postgres://localhost/x --payload {} --max-payload -1",
		"takes at most 1":                  "layouts a b",
		"choose one of standard, doorito,": "layouts nope",
	} {
		refused(t, words, "", strings.Fields(args)...)
		if got := run(t, "", strings.Fields(args)...); strings.Contains(got.err+got.out, "hunter2") {
			t.Errorf("outbox %s shows the password", args)
		}
	}
}
