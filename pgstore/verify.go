package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrMismatch means that the table is not there or not what the layout says.
var ErrMismatch = errors.New("the table does not match the layout")

// Verify reads the table's description and reports, as ErrMismatch, what does not fit the
// layout. It writes nothing.
func (s *Store) Verify(ctx context.Context) error { return s.layout.Verify(ctx, s.pool) }

// Verify reads the description of the layout's table and reports, as ErrMismatch, what does
// not fit. It writes nothing, and waits for no lock.
func (l Layout) Verify(ctx context.Context, db querier) error {
	if err := l.verifyTable(ctx, db, l.Table, l.Columns.all()); err != nil {
		return err
	}
	if l.DeadLetter != nil {
		return l.verifyTable(ctx, db, l.DeadLetter.Table, l.DeadLetter.Columns.all())
	}
	return nil
}

func (l *Layout) verifyTable(ctx context.Context, db querier, table string, columns []named) error {
	name := l.qualified(table)
	rows, err := db.Query(ctx, `
		SELECT attname::text FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`, name)
	if err != nil {
		return fmt.Errorf("outbox: read the description of table %s: %w", name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("outbox: read the description of table %s: %w", name, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("outbox: %w: there is no table %s; make it with outbox migrate up --layout %s", ErrMismatch, name, l.Name)
	}
	have := make(map[string]bool, len(found))
	for _, column := range found {
		have[column] = true
	}
	for _, column := range columns {
		if !column.IsZero() && !have[column.Name] {
			return fmt.Errorf("outbox: %w %s: table %s has no column %q for %s",
				ErrMismatch, l.Name, name, column.Name, column.field)
		}
	}
	return nil
}
