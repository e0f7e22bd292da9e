package cli_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// event is an id that need not be there.
const event = "01890000-0000-7000-8000-000000000000"

// streamCommands are those that look at a stream; what they need beside the database is given.
var streamCommands = []string{
	"relay --to stdout:", "drain --to stdout:", "console --listen 127.0.0.1:0", "emit --type placed --topic orders --payload {}",
	"stats", "top", "list", "show " + event, "retry " + event, "hold " + event, "release " + event, "replay --id " + event,
	"audit", "purge --dry-run", "repair", "subscriptions list", "subscriptions create more", "subscriptions drop default",
}

// tableCommands are those that look at a queue table.
var tableCommands = []string{
	"relay --to stdout:", "drain --to stdout:", "console --listen 127.0.0.1:0",
	"stats", "top", "list", "show " + event, "retry " + event, "replay --dry-run --id " + event, "audit", "purge --dry-run",
}

const versionSQL = `CREATE OR REPLACE FUNCTION outbox_schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS `

// TestSchema runs every command on a stream that is older, newer or half of what the program needs.
func TestSchema(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ change, words string }{
		"older": {
			`DROP FUNCTION outbox_schema_version; DELETE FROM outbox_stream_standard_goose WHERE version_id >= 8`,
			"function outbox_schema_version() is missing; run outbox migrate up",
		},
		"newer": {
			versionSQL + `'SELECT 1000'; ALTER TABLE outbox_parked DROP COLUMN reason`,
			"this program is older than the stream's schema",
		},
		"half": {
			`DROP INDEX outbox_parked_due`,
			"index outbox_parked_due is missing; make it again with: CREATE INDEX CONCURRENTLY outbox_parked_due ON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStandard(t)
			pgtest.Exec(t, s.pool, test.change)
			for _, command := range streamCommands {
				s.refuses(test.words, command)
				if t.Failed() {
					return // a console that is not refused serves for a minute: one is enough
				}
				s.refuses(test.words, command+" --json")
			}
			if got := run(t, "", s.args("doctor", nil)...); got.code != 4 || !strings.Contains(got.out, "problem   layout") {
				t.Errorf("doctor exits with %d and prints %s", got.code, got.out)
			}
			got := run(t, "", s.args("migrate status", nil)...)
			if got.code != 0 || !strings.Contains(got.err, test.words) || !strings.Contains(got.out, "00001_stream.sql") {
				t.Errorf("migrate status: %+v", got)
			}
		})
	}
}

// TestSchemaIsMended has migrate up mend what it can, and say what it cannot.
func TestSchemaIsMended(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	pgtest.Exec(t, s.pool, `DROP FUNCTION outbox_schema_version; DELETE FROM outbox_stream_standard_goose WHERE version_id >= 8`)
	s.refuses("run outbox migrate up", "stats")
	if got := s.run("", "migrate up"); !strings.Contains(got, "applied") {
		t.Errorf("migrate up prints %q", got)
	}
	s.run("", "stats")
	pgtest.Exec(t, s.pool, `DROP INDEX outbox_parked_due`)
	got := run(t, "", s.args("migrate up", nil)...)
	if got.code != 1 || !strings.Contains(got.err, "all migrations are applied, but the stream's schema is incomplete: index outbox_parked_due is missing") {
		t.Errorf("migrate up: %+v", got)
	}
	_, statement, _ := strings.Cut(got.err, "make it again with: ")
	pgtest.Exec(t, s.pool, statement)
	s.run("", "stats")
	if got := s.run("", "migrate up"); got != "nothing to do: all migrations are applied\n" {
		t.Errorf("migrate up prints %q", got)
	}
}

// TestSchemaIsNewer has the program work on a later schema that has what it needs.
func TestSchemaIsNewer(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	pgtest.Exec(t, s.pool, versionSQL+`'SELECT 1000'; ALTER TABLE outbox_parked ADD COLUMN colour text; CREATE TABLE outbox_colours (id int)`)
	s.emit(10)
	if got := delivered(t, s.run("", "drain"+quiet)); len(got) != 10 {
		t.Errorf("delivered %d events, want 10", len(got))
	}
	s.run("", "migrate up")
}

// TestTypes runs every command on a queue table with columns of other types.
func TestTypes(t *testing.T) {
	t.Parallel()
	s := &standard{T: t, url: pgtest.URL(t)}
	s.pool = connect(t, s.url)
	s.run("", "migrate up --layout modkit")
	pgtest.Exec(t, s.pool, `ALTER TABLE modkit_outbox_events ADD COLUMN colour text NOT NULL`)
	emit := "emit --layout modkit --namespace n --topic t --payload {}"
	s.refuses(`has column "colour", which takes no NULL`, emit)
	s.run("", "stats --layout modkit")
	pgtest.Exec(t, s.pool, `ALTER TABLE modkit_outbox_events DROP COLUMN colour`)
	s.run("", emit)
	pgtest.Exec(t, s.pool, `ALTER TABLE modkit_outbox_events ALTER locked_by TYPE text`)
	const words = `"modkit_outbox_events" has column "locked_by" for lockedBy as text: uuid is needed`
	for _, command := range append(tableCommands, emit) {
		if !strings.Contains(command, "--layout") {
			command += " --layout modkit"
		}
		s.refuses(words, command)
	}
	if got := run(t, "", s.args("doctor --layout modkit", nil)...); got.code != 4 || !strings.Contains(strings.Join(strings.Fields(got.out), " "), words) {
		t.Errorf("doctor exits with %d and prints %s", got.code, got.out)
	}
	if got := run(t, "", s.args("migrate status --layout modkit", nil)...); got.code != 0 || !strings.Contains(got.err, words) {
		t.Errorf("migrate status: %+v", got)
	}
}
