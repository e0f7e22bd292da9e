package pgstream

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// SchemaError says why a stream's schema was refused. It matches ErrSchemaOlder, ErrSchemaNewer
// or ErrSchemaIncomplete.
type SchemaError struct {
	// Verdict is ErrSchemaOlder, ErrSchemaNewer or ErrSchemaIncomplete.
	Verdict error
	// Version is the migration that the schema is at; zero if it does not say.
	Version int
	// Program is the newest migration that this program knows.
	Program int
	// Differences are what is missing or different.
	Differences []Difference
}

// Difference is one thing in a schema that is not as this program needs it.
type Difference struct {
	// Object names it, such as "index outbox_parked_due".
	Object string
	// Problem says what is wrong with it, such as "is missing".
	Problem string
	// Mend says how to mend it; empty if migrations do.
	Mend string
}

// String is one line.
func (d Difference) String() string {
	if d.Mend == "" {
		return d.Object + " " + d.Problem
	}
	return d.Object + " " + d.Problem + "; " + d.Mend
}

// shownDifferences is how many of them an error names. Doctor lists them all.
const shownDifferences = 3

// Error is one line, with the command that mends it.
func (e *SchemaError) Error() string {
	switch {
	case errors.Is(e.Verdict, ErrSchemaOlder):
		text := "outbox: the stream's schema is older than this program"
		if e.Version > 0 {
			text += fmt.Sprintf(" (it is at migration %d of %d)", e.Version, e.Program)
		}
		if len(e.Differences) > 0 {
			text += ": " + e.list(Difference.short)
		}
		return text + "; run outbox migrate up"
	case errors.Is(e.Verdict, ErrSchemaNewer):
		return fmt.Sprintf("outbox: this program is older than the stream's schema (it knows %d migrations of %d): %s; upgrade the program",
			e.Program, e.Version, e.list(Difference.short))
	default:
		return "outbox: the stream's schema is incomplete: " + e.list(Difference.String)
	}
}

// Unwrap makes errors.Is hold for the verdict.
func (e *SchemaError) Unwrap() error { return e.Verdict }

func (d Difference) short() string { return d.Object + " " + d.Problem }

// list names the first differences and counts the others.
func (e *SchemaError) list(show func(Difference) string) string {
	var parts []string
	for _, d := range e.Differences[:min(shownDifferences, len(e.Differences))] {
		parts = append(parts, show(d))
	}
	text := strings.Join(parts, "; ")
	if more := len(e.Differences) - shownDifferences; more > 0 {
		text += fmt.Sprintf("; and %d more, which outbox doctor lists", more)
	}
	return text
}

// explain says what is wrong with an object that should be want, and is another or not there.
func (s Stream) explain(want, is object, there bool, since int) Difference {
	d := Difference{Object: want.identity(), Problem: "is missing", Mend: remake(since)}
	state, rest, _ := strings.Cut(is.detail, " ")
	switch {
	case there && want.kind == "trigger" && state == "disabled" && rest == want.detail:
		table, name, _ := strings.Cut(want.name, ".")
		d.Problem = "is disabled"
		d.Mend = fmt.Sprintf("enable it with: ALTER TABLE %s ENABLE TRIGGER %s;", s.table(table), Stream{}.table(name))
	case want.kind == "index":
		create := s.createIndex(want)
		d.Mend = "make it again with: " + create
		if there {
			d.Problem = fmt.Sprintf("is %q, and %q is needed", is.detail, want.detail)
			d.Mend = fmt.Sprintf("make it anew with: DROP INDEX %s; %s", s.table(want.name), create)
		}
		if state == "invalid" && rest == want.detail {
			d.Problem = "is invalid"
		}
	case there:
		d.Problem = fmt.Sprintf("is %q, and %q is needed", is.detail, want.detail)
	case want.kind == "table", want.kind == "slot", want.kind == "column":
		d.Mend = "restore it from a backup, or make a stream in another schema"
	}
	return d
}

// createIndex is the statement that makes an index.
func (s Stream) createIndex(want object) string {
	detail, unique := strings.CutPrefix(want.detail, "unique ")
	create := "CREATE INDEX"
	if unique {
		create = "CREATE UNIQUE INDEX"
	}
	table, method, _ := strings.Cut(strings.TrimPrefix(detail, "on "), " ")
	if table != "outbox_stream" { // PostgreSQL knows no such way for a table with partitions
		create += " CONCURRENTLY"
	}
	return fmt.Sprintf("%s %s ON %s %s;", create, want.name, s.table(table), method)
}

// remake tells where an object's statement is.
func remake(since int) string {
	if name, ok := migrationFiles()[since]; ok {
		return "make it again as in migration " + name
	}
	return ""
}

// migrationFiles are the names of the migrations, by number.
func migrationFiles() map[int]string {
	paths, _ := fs.Glob(files, "migrations/*.sql") // only a bad pattern fails
	names := make(map[int]string, len(paths))
	for _, file := range paths {
		name := path.Base(file)
		number, _, _ := strings.Cut(name, "_")
		if version, err := strconv.Atoi(number); err == nil {
			names[version] = name
		}
	}
	return names
}

// newestMigration is the number of the last one.
func newestMigration() int { return slices.Max(slices.Collect(maps.Keys(migrationFiles()))) }

// misled is a function that looks for its tables in another schema than its own: the schema was renamed, or a dump was loaded
// under another name, and what it emits goes elsewhere.
func misled(function object) difference {
	return difference{0, Difference{
		Object: "function " + function.name, Problem: "looks for its tables in another schema; was this one renamed?",
		Mend: fmt.Sprintf("put it right with: ALTER FUNCTION %s SET search_path TO %s, pg_temp;", function.name, function.detail),
	}}
}
