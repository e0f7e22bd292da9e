package table

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// equal returns the part of a filter that an index may serve: comparisons with =.
func (t *Table) equal(ctx context.Context, tx pgx.Tx, f *view.Filter, args *query.Args) (string, error) {
	c := &t.layout.Columns
	key, aggregateType, aggregateID, tenant := f.Key, f.AggregateType, f.AggregateID, ""
	if c.Key.IsZero() && key != "" {
		kind, id, ok := strings.Cut(key, "/")
		switch {
		case !ok:
			return "", fmt.Errorf("outbox: the key of an event of %s is its aggregate, as type/id: %w", t.layout.Table, view.ErrFilter)
		case aggregateType != "" && aggregateType != kind, aggregateID != "" && aggregateID != id:
			return "", fmt.Errorf("outbox: %w: the key is not that of the aggregate", view.ErrFilter)
		}
		key, aggregateType, aggregateID = "", kind, id
	}
	if f.TenantID != uuid.Nil {
		tenant = f.TenantID.String()
	}
	var list []string
	for _, e := range []struct {
		column layouts.Column
		value  string
	}{
		{c.Key, key},
		{c.Namespace, f.Namespace},
		{c.Topic, f.Topic},
		{c.Type, f.Type},
		{c.AggregateType, aggregateType},
		{c.AggregateID, aggregateID},
		{c.TenantID, tenant},
	} {
		if e.value == "" {
			continue
		}
		if err := t.check(ctx, tx, e.column, e.value); err != nil {
			return "", err
		}
		list = append(list, col(e.column)+" = "+args.Add(e.value))
	}
	return strings.Join(list, " AND "), nil
}

// enumSQL reads the values of column $2 of table $1; none if it is no enum, as in some tables that others created.
const enumSQL = `
SELECT e.enumlabel::text FROM pg_attribute AS a JOIN pg_enum AS e ON e.enumtypid = a.atttypid
WHERE a.attrelid = to_regclass($1) AND a.attname = $2 ORDER BY e.enumsortorder`

// check rejects a value that a column cannot have.
func (t *Table) check(ctx context.Context, tx pgx.Tx, column layouts.Column, value string) error {
	if column.Type == "uuid" {
		if _, err := uuid.Parse(value); err != nil {
			return fmt.Errorf("outbox: %q is not a UUID, as every %s is: %w", value, column.Name, view.ErrFilter)
		}
	}
	if column.Enum == "" {
		return nil
	}
	rows, _ := tx.Query(ctx, enumSQL, t.layout.Events(), column.Name) // the rows say what failed
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(values) > 0 && !slices.Contains(values, value) {
		err = fmt.Errorf("outbox: %w: there is no %s %q; choose one of %s", view.ErrFilter, column.Name, value, strings.Join(values, ", "))
	}
	return err
}

// rest returns the other part of a filter.
func (t *Table) rest(f *view.Filter, args *query.Args) string {
	c := &t.layout.Columns
	var list []string
	if f.State != "" {
		list = append(list, "("+t.state()+") = "+args.Add(string(f.State)))
	}
	if !f.Since.IsZero() {
		list = append(list, col(c.CreatedAt)+" >= "+args.Add(f.Since))
	}
	if !f.Until.IsZero() {
		list = append(list, col(c.CreatedAt)+" < "+args.Add(f.Until))
	}
	if f.Error != "" {
		list = append(list, query.NormalSQL(col(c.LastError))+" = "+args.Add(f.Error))
	}
	return strings.Join(list, " AND ")
}

// Ids that we generate begin with the time. It is the time of another clock, and a transaction may begin well
// before it emits.
const (
	idEarlier = time.Minute
	idLater   = time.Hour
)

// firstID returns the lowest id of a time.
func firstID(at time.Time) uuid.UUID {
	var id uuid.UUID
	millis := uint64(max(at.UnixMilli(), 0))
	for i := range 6 {
		id[i] = byte(millis >> (40 - 8*i))
	}
	return id
}
