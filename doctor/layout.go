package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// qualified puts a name into a schema, as SQL.
func qualified(schema, name string) string {
	if schema == "" {
		return sqlname.Quote(name)
	}
	return sqlname.Quote(schema) + "." + sqlname.Quote(name)
}

func (t queueTable) verify(ctx context.Context, e *exam) error {
	err := t.layout.Verify(ctx, e.tx)
	if errors.Is(err, pgstore.ErrMismatch) {
		e.unfit = true
		e.add(Problem, strings.TrimPrefix(err.Error(), "outbox: "),
			"Check --layout, --schema and --table, or make the table: outbox migrate up --layout "+t.layout.Name)
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.timesWithZone(ctx, e); err != nil {
		return err
	}
	e.well("table %s is what layout %s says", t.table(), t.layout.Name)
	return nil
}

// timesWithZone looks for times that mean another moment in every session's time zone.
func (t queueTable) timesWithZone(ctx context.Context, e *exam) error {
	columns := &t.layout.Columns
	var names []string
	for _, column := range []pgstore.Column{
		columns.NextAttemptAt, columns.LockedUntil, columns.CreatedAt, columns.UpdatedAt, columns.DeliveredAt,
	} {
		if !column.IsZero() {
			names = append(names, column.Name)
		}
	}
	rows, err := e.tx.Query(ctx, `
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attname = ANY($2::text[]) AND atttypid <> 'timestamptz'::regtype ORDER BY attnum`, t.table(), names)
	if err != nil {
		return err
	}
	var name, is string
	_, err = pgx.ForEachRow(rows, []any{&name, &is}, func() error {
		e.add(Warning, fmt.Sprintf("column %q is a %s: it means another moment in every time zone, and when clocks change "+
			"events wait an hour or go out early", name, is),
			fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz USING %s AT TIME ZONE 'UTC'; if it holds UTC. It "+
				"rewrites the table: stop relays and producers.",
				t.table(), sqlname.Quote(name), sqlname.Quote(name)))
		return nil
	})
	return err
}

func (t streamTarget) verify(ctx context.Context, e *exam) error {
	missing, err := t.missing(ctx, e)
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(missing, t.at("outbox_stream")):
		e.unfit = true
		e.add(Problem, "there is no stream", "Check --schema, or make the stream: outbox migrate up")
		return nil
	case len(missing) > 0:
		e.unfit = true
		e.add(Problem, "the stream lacks "+strings.Join(missing, ", "),
			"Restore what was dropped from a backup, or make a stream in another schema: outbox migrate up --schema NAME")
		return nil
	}
	var pgErr *pgconn.PgError
	err = t.stream.Verify(ctx, e.tx)
	switch {
	case errors.As(err, &pgErr):
		return err
	case err != nil && !errors.Is(err, pgstream.ErrRestored): // which has a check of its own
		e.add(Problem, "relays refuse the stream: "+strings.TrimPrefix(err.Error(), "outbox: "), "")
	}
	e.well("the stream has all of its tables")
	return nil
}

// missing are the tables and slots that a stream should have and does not.
func (t streamTarget) missing(ctx context.Context, e *exam) ([]string, error) {
	var names []string
	for _, relation := range t.relations() {
		if !relation.slots {
			names = append(names, relation.name)
		}
	}
	rows, err := e.tx.Query(ctx, `SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL`, names)
	if err != nil {
		return nil, err
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || slices.Contains(missing, t.at("outbox_settings")) {
		return missing, err
	}
	rows, err = e.tx.Query(ctx, fmt.Sprintf(`
SELECT 'slot ' || slot FROM %s AS o, generate_series(0, o.slots - 1) AS slot
WHERE NOT EXISTS (SELECT FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
  WHERE inhparent = to_regclass($1) AND c.relname = 'outbox_stream_' || slot)`, t.at("outbox_settings")), t.at("outbox_stream"))
	if err != nil {
		return nil, err
	}
	slots, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return append(missing, slots...), err
}
