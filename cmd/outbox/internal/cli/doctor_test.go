package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/doctor"
)

// TestDoctor has an exit code for each severity.
func TestDoctor(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"})
	s := &standard{T: t, url: server.URL("postgres")}
	s.pool = connect(t, s.url)
	examine := func(code int, words ...string) string {
		t.Helper()
		got := run(t, "", s.args("doctor", nil)...)
		if got.code != code || got.err != "" {
			t.Errorf("exit code %d, want %d: %s", got.code, code, got.err)
		}
		for _, word := range words {
			if !strings.Contains(got.out, word) {
				t.Errorf("doctor lacks %q:\n%s", word, got.out)
			}
		}
		return got.out
	}
	examine(4, "\nproblem   layout          there is no stream\n", "\n                          -> Check --schema, or make "+
		"the stream: outbox migrate up\n")
	s.run("", "migrate up")
	examine(0, "layout standard, on PostgreSQL ", "\nok        layout          the stream has all that this program needs\n", "\n0 problems, 0 warnings, 0 notes\n")

	pgtest.Exec(t, s.pool, `CREATE INDEX reasons ON outbox_parked (reason);
		UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'reasons'::regclass`)
	out := examine(3, "\nwarning   indexes         ", "-> REINDEX INDEX CONCURRENTLY reasons;", "\n0 problems, 1 warning, 0 notes\n")
	if strings.Index(out, "\nwarning") > strings.Index(out, "\nok") {
		t.Errorf("the worst is not first:\n%s", out)
	}

	got := run(t, "", s.args("doctor --json", nil)...)
	var report struct {
		doctor.Report
		Worst doctor.Severity `json:"worst"`
	}
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || got.code != 3 {
		t.Fatalf("doctor --json: exit code %d, %v: %s", got.code, err, got.out)
	}
	if report.Worst != doctor.Warning || len(report.Findings) != len(doctor.Checks()) || report.Target != "layout standard" {
		t.Errorf("doctor --json: %+v", report)
	}

	s.run("", "migrate up --layout modkit")
	pgtest.Exec(t, s.pool, `INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, next_attempt_at)
		VALUES (gen_random_uuid(), 'shop', 'orders', '{}', 'pending', now() - interval '1 hour')`)
	if got := run(t, "", s.args("doctor --layout modkit", nil)...); got.code != 4 ||
		!strings.Contains(got.out, "-> Run a relay: outbox relay --layout modkit --table modkit_outbox_events --to URL.") {
		t.Errorf("an event that nobody takes: exit code %d: %s", got.code, got.out)
	}
	if got := run(t, "", s.args("doctor --layout modkit --patience 2h", nil)...); got.code != 0 {
		t.Errorf("with more patience: exit code %d: %s", got.code, got.out)
	}
	if got := s.run("", "doctor --check keys --check clock"); strings.Contains(got, "indexes") || !strings.Contains(got, "\nok        keys ") {
		t.Errorf("two checks: %s", got)
	}
	s.refuses("cannot be negative", "doctor --patience -1s")
	s.refuses(`a role is for emit or for relay, not for "both"`, "doctor --for both")
	s.refuses("there is no check", "doctor --check feet")
	refused(t, "cannot reach the database", "", "doctor", "--from", "postgres://u:hunter2@127.0.0.1:1/x")
}

// TestDoctorOfProducer takes a role that may only emit for a producer's, and for no relay's.
func TestDoctorOfProducer(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	role := pgtest.AsRole(t, s.pool)
	s.url += "&role=" + role.Config().ConnConfig.RuntimeParams["role"]
	examine := func(code int, words, command string) string {
		t.Helper()
		got := run(t, "", s.args("doctor --check privileges "+command, nil)...)
		if got.code != code || !strings.Contains(got.out, words) {
			t.Errorf("doctor %s: exit code %d, want %d and %q: %s", command, got.code, code, words, got.out)
		}
		return got.out
	}
	examine(4, "If it is a producer's role: GRANT ", "")
	_, grants, _ := strings.Cut(examine(4, "may not emit", "--for emit"), "-> ")
	grants, _, _ = strings.Cut(grants, "\n")
	pgtest.Exec(t, s.pool, grants)
	examine(0, "may emit, and not relay", "")
	examine(0, "may emit", "--for emit")
	examine(4, "may not relay", "--for relay")
	s.run("", "emit --topic t --type t --payload {} --dedupe-key k1")
	s.run("", "emit --topic t --type t --payload {} --id 0198c0de-0000-7000-8000-000000000001")
	s.refuses("the role needs that right; outbox doctor names the GRANT, see docs/roles.md", "stats")
}
