// Package table is package ops' half for queue tables.
package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/view"
	"github.com/packfinderz/outbox/pgstore"
)

// Table is a queue table.
type Table struct {
	pool   *pgxpool.Pool
	layout tablesql.Layout
	store  *pgstore.Store
}

// New returns the half of a layout's table. It does not connect.
func New(pool *pgxpool.Pool, layout layouts.Layout) (*Table, error) {
	store, err := pgstore.New(pool, layout, pgstore.Config{})
	if err != nil {
		return nil, err
	}
	return &Table{pool: pool, layout: tablesql.Layout{Layout: layout}, store: store}, nil
}

// Describe says what the table has and can do.
func (t *Table) Describe() view.Description {
	const cannotHold = "a queue table has no state for an event that a person holds; only a stream does"
	d := view.Description{
		Name: t.layout.Name + "/" + t.layout.Table, Kind: "table", Layout: t.layout.Name, Table: t.layout.Table,
		Fields: []view.Field{view.FieldID},
		Cannot: map[view.Operation]string{view.OperationHold: cannotHold, view.OperationRelease: cannotHold},
	}
	c := &t.layout.Columns
	aggregate := !c.AggregateType.IsZero() && !c.AggregateID.IsZero()
	for _, f := range []struct {
		field view.Field
		has   bool
	}{
		{view.FieldNamespace, !c.Namespace.IsZero()},
		{view.FieldTopic, !c.Topic.IsZero()},
		{view.FieldType, !c.Type.IsZero()},
		{view.FieldAggregate, aggregate},
		{view.FieldKey, !c.Key.IsZero() || aggregate},
		{view.FieldTenant, !c.TenantID.IsZero()},
		{view.FieldError, !c.LastError.IsZero()},
	} {
		if f.has {
			d.Fields = append(d.Fields, f.field)
		}
	}
	d.States = []view.State{view.StateDue}
	if !c.NextAttemptAt.IsZero() {
		d.States = append(d.States, view.StateScheduled, view.StateRetrying)
	}
	if t.layout.Hold != layouts.HoldRowLock {
		d.States = append(d.States, view.StateClaimed)
	}
	d.States = append(d.States, view.StateDead, view.StateDelivered)
	return d
}

// Verify compares the table with its layout.
func (t *Table) Verify(ctx context.Context) error { return t.store.Verify(ctx) }

// Ready is a no-op: a table's rows need no other evidence.
func (t *Table) Ready(context.Context) error { return nil }

// Wake tells relays that there are events.
func (t *Table) Wake(ctx context.Context) error { return pgstore.Wake(ctx, t.pool, t.layout.Layout) }

// col is a column of the table under its alias t.
func col(c layouts.Column) string { return tablesql.T(c) }

// orElse formats a column into SQL, or returns another expression if the table has no such column.
func orElse(c layouts.Column, sql, missing string) string {
	if c.IsZero() {
		return missing
	}
	return fmt.Sprintf(sql, col(c))
}
