package ops

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/pgstore"
)

// table is a queue table.
type table struct {
	pool        *pgxpool.Pool
	layout      pgstore.Layout
	store       *pgstore.Store
	is          pgstore.Conditions
	description Description
	log         auditLog
}

// Table is a queue table. It does not connect.
func Table(pool *pgxpool.Pool, layout pgstore.Layout) (Target, error) {
	store, err := pgstore.New(pool, layout, pgstore.Config{})
	if err != nil {
		return nil, err
	}
	t := &table{pool: pool, layout: layout, store: store, is: layout.Conditions()}
	t.description = t.describe()
	t.log = auditLog{pool: pool, schema: layout.Schema, target: t.description.Name}
	return t, nil
}

// Describe says what the table has and can do.
func (t *table) Describe() Description { return t.description }

func (t *table) describe() Description {
	const cannotHold = "a queue table has no state for an event that a person holds; only a stream does"
	d := Description{
		Name: t.layout.Name + "/" + t.layout.Table, Kind: KindTable, Layout: t.layout.Name, Table: t.layout.Table,
		Fields: []Field{FieldID},
		Cannot: map[Operation]string{OperationHold: cannotHold, OperationRelease: cannotHold},
	}
	c := &t.layout.Columns
	aggregate := !c.AggregateType.IsZero() && !c.AggregateID.IsZero()
	for _, f := range []struct {
		field Field
		has   bool
	}{
		{FieldNamespace, !c.Namespace.IsZero()},
		{FieldTopic, !c.Topic.IsZero()},
		{FieldType, !c.Type.IsZero()},
		{FieldAggregate, aggregate},
		{FieldKey, !c.Key.IsZero() || aggregate},
		{FieldTenant, !c.TenantID.IsZero()},
		{FieldError, !c.LastError.IsZero()},
	} {
		if f.has {
			d.Fields = append(d.Fields, f.field)
		}
	}
	d.States = []State{StateDue}
	if !c.NextAttemptAt.IsZero() {
		d.States = append(d.States, StateScheduled, StateRetrying)
	}
	if t.layout.Hold != pgstore.HoldRowLock {
		d.States = append(d.States, StateClaimed)
	}
	d.States = append(d.States, StateDead, StateDelivered)
	return d
}

// Audit lists what was done to the table's events.
func (t *table) Audit(ctx context.Context, page Page) (*AuditLog, error) {
	return t.log.page(ctx, page)
}

// wrap says what could not be done.
func (t *table) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbox: %s of %s: %w", doing, t.layout.Table, err)
}

// col is a column of the table under its alias t.
func col(c pgstore.Column) string { return "t." + sqlname.Quote(c.Name) }

// orElse is the SQL of a column, or another one where the table has none.
func orElse(c pgstore.Column, sql, missing string) string {
	if c.IsZero() {
		return missing
	}
	return fmt.Sprintf(sql, col(c))
}
