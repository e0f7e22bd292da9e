package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

func (t tablePatient) verify(ctx context.Context, e *exam) (string, error) {
	remedy := "Check --layout, --schema and --table, or make the table: "
	if sqlstate.HasMigrations(t.layout.Name) {
		remedy += "outbox migrate up " + t.flags(e)
	} else {
		remedy += t.layout.Create()
	}
	list, err := pgstore.Mismatches(ctx, e.tx, t.layout.Layout)
	if errors.Is(err, pgstore.ErrMismatch) { // there is no table
		e.unfit = true
		seen, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "outbox: "), "; ")
		e.add(Problem, seen, remedy)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.OnlyEmit {
			e.add(Warning, m.Problem, "Relays work. If this layout is used to emit, change the column or the layout.")
			continue
		}
		e.unfit = true
		e.add(Problem, m.Problem, "Change the column or the layout, or check --layout, --schema and --table.")
	}
	if e.unfit {
		return "", nil
	}
	return fmt.Sprintf("table %s is what layout %s says", t.table(), t.layout.Name), t.timesWithZone(ctx, e)
}

// timesWithZone looks for time columns without a zone: they mean another moment in every session's time zone.
func (t tablePatient) timesWithZone(ctx context.Context, e *exam) error {
	columns := &t.layout.Columns
	names := there(columns.NextAttemptAt, columns.LockedUntil, columns.CreatedAt, columns.UpdatedAt, columns.DeliveredAt)
	rows, _ := e.tx.Query(ctx, `
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attname = ANY($2::text[]) AND atttypid <> 'timestamptz'::regtype ORDER BY attnum`, t.table(), names) // the rows say what failed
	var name, is string
	_, err := pgx.ForEachRow(rows, []any{&name, &is}, func() error {
		e.add(Warning, fmt.Sprintf("column %q is a %s: it means another moment in every time zone, and when clocks change "+
			"events wait an hour or go out early", name, is),
			fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz USING %s AT TIME ZONE 'UTC'; if it holds UTC. It "+
				"rewrites the table: stop relays and producers.",
				t.table(), sqlname.Quote(name), sqlname.Quote(name)))
		return nil
	})
	return err
}

func (t streamPatient) verify(ctx context.Context, e *exam) (string, error) {
	var pgErr *pgconn.PgError
	err := t.stream.CheckSchema(ctx, e.tx)
	if err == nil {
		err = t.stream.Verify(ctx, e.tx)
	}
	var schema *pgstream.SchemaError
	switch {
	case errors.As(err, &pgErr):
		return "", err
	case errors.As(err, &schema):
		t.differences(e, schema)
	case errors.Is(err, pgstream.ErrNoStream):
		e.unfit = true
		e.add(Problem, "there is no stream", "Check --schema, or make the stream: outbox migrate up")
	case err != nil && !errors.Is(err, pgstream.ErrRestored): // it has its own check
		e.add(Problem, "relays refuse the stream: "+strings.TrimPrefix(err.Error(), "outbox: "), "")
	}
	return "the stream has all that this program needs", nil
}

// differences lists everything that keeps relays from using the stream.
func (t streamPatient) differences(e *exam, schema *pgstream.SchemaError) {
	var list []string
	for _, d := range schema.Differences {
		list = append(list, d.Object+" "+d.Problem)
		// Without an index, a function or a trigger the tables can still be read.
		switch kind, _, _ := strings.Cut(d.Object, " "); kind {
		case "table", "column", "slot", "sequence":
			e.unfit = true
		}
	}
	all := strings.Join(list, "; ")
	switch {
	case errors.Is(schema, pgstream.ErrSchemaOlder):
		e.add(Problem, "the stream's schema is older than this program: "+all, "outbox migrate up"+t.flags())
	case errors.Is(schema, pgstream.ErrSchemaNewer):
		e.add(Problem, "this program is older than the stream's schema: "+all, "Upgrade the program.")
	default:
		for i, d := range schema.Differences {
			e.add(Problem, "relays refuse the stream: "+list[i], sentence(d.Mend))
		}
	}
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
