package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// equal returns the part of a filter that an index may serve: comparisons with =.
func (t *Table) equal(f *view.Filter, args *query.Args) (string, error) {
	c := &t.layout.Columns
	aggregateType, aggregateID := f.AggregateType, f.AggregateID
	var list []string
	add := func(column layouts.Column, value string) error {
		if value == "" {
			return nil
		}
		if column.Type == "uuid" {
			if _, err := uuid.Parse(value); err != nil {
				return fmt.Errorf("outbox: %q is not a UUID, as every %s is: %w", value, column.Name, view.ErrFilter)
			}
		}
		list = append(list, col(column)+" = "+args.Add(value))
		return nil
	}
	if c.Key.IsZero() && f.Key != "" {
		kind, id, ok := strings.Cut(f.Key, "/")
		if !ok {
			return "", fmt.Errorf("outbox: the key of an event of %s is its aggregate, as type/id: %w", t.layout.Table, view.ErrFilter)
		}
		for _, other := range []struct {
			is   *string
			want string
		}{{&aggregateType, kind}, {&aggregateID, id}} {
			if *other.is != "" && *other.is != other.want {
				return "", fmt.Errorf("outbox: %w: the key is not that of the aggregate", view.ErrFilter)
			}
			*other.is = other.want
		}
	} else if err := add(c.Key, f.Key); err != nil {
		return "", err
	}
	tenant := ""
	if f.TenantID != uuid.Nil {
		tenant = f.TenantID.String()
	}
	for _, e := range []struct {
		column layouts.Column
		value  string
	}{
		{c.Namespace, f.Namespace},
		{c.Topic, f.Topic},
		{c.Type, f.Type},
		{c.AggregateType, aggregateType},
		{c.AggregateID, aggregateID},
		{c.TenantID, tenant},
	} {
		if err := add(e.column, e.value); err != nil {
			return "", err
		}
	}
	return strings.Join(list, " AND "), nil
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
