package registry

import (
	"fmt"
	"slices"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// Layout returns the contract's table with the event types and aggregate types of this backend.
func Layout() layouts.Layout {
	layout := packfinderz.Layout()
	layout.Columns.Type.Values = names(enums.EventTypes())
	layout.Columns.AggregateType.Values = names(enums.AggregateTypes())
	return layout
}

func names[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	return names
}

// CheckValues refuses a layout that lacks an event type or aggregate type of the backend. A layout without values
// accepts all.
func CheckValues(layout layouts.Layout) error {
	own := Layout()
	for _, c := range []struct {
		name       string
		takes, has []string
	}{
		{"event type", layout.Columns.Type.Values, own.Columns.Type.Values},
		{"aggregate type", layout.Columns.AggregateType.Values, own.Columns.AggregateType.Values},
	} {
		for _, value := range c.has {
			if len(c.takes) > 0 && !slices.Contains(c.takes, value) {
				return fmt.Errorf("outbox: layout %s does not take the %s %s: name it among the column's values", layout.Name, c.name, value)
			}
		}
	}
	return nil
}
