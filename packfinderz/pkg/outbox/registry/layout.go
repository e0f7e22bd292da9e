package registry

import (
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/pgstore"
)

// Layout is the contract's table, with the event types and the aggregate types of this backend.
func Layout() pgstore.Layout {
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
