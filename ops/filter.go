package ops

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// MaxIDs is the largest number of ids in a filter.
const MaxIDs = 10_000

func check(f *Filter, d *Description) error {
	for _, c := range []struct {
		field Field
		set   bool
	}{
		{FieldNamespace, f.Namespace != ""},
		{FieldTopic, f.Topic != ""},
		{FieldType, f.Type != ""},
		{FieldAggregate, f.AggregateType != "" || f.AggregateID != ""},
		{FieldKey, f.Key != ""},
		{FieldTenant, f.TenantID != uuid.Nil},
		{FieldError, f.Error != ""},
	} {
		if c.set && !d.Has(c.field) {
			return fmt.Errorf("outbox: %w: events of %s have no %s", ErrUnsupported, d.Name, c.field)
		}
	}
	switch {
	case f.State != "" && !slices.Contains(d.States, f.State):
		return fmt.Errorf("outbox: %w: events of %s are never %q; choose one of %v", ErrUnsupported, d.Name, f.State, d.States)
	case len(f.IDs) > MaxIDs:
		return fmt.Errorf("outbox: %w: it has %d ids; give at most %d", ErrFilter, len(f.IDs), MaxIDs)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return fmt.Errorf("outbox: %w: its end is not after its beginning", ErrFilter)
	}
	return nil
}

// Page is a part of a list.
type Page struct {
	// Size is the largest number of entries. Default 50; at most 1,000.
	Size int
	// Cursor is Next of the page before; empty for the first page.
	Cursor string
}

const (
	defaultPage = 50
	maxPage     = 1000
)

func (p Page) size() (int, error) {
	switch {
	case p.Size == 0:
		return defaultPage, nil
	case p.Size < 0 || p.Size > maxPage:
		return 0, fmt.Errorf("outbox: %w: the page has %d entries; choose 1 to %d", ErrFilter, p.Size, maxPage)
	}
	return p.Size, nil
}
