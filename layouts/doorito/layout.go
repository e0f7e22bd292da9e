// Package doorito is the outbox table of the Doorito contract: a Django model with a status, a due time that also
// holds the row, and a maximum number of attempts in every row.
package doorito

import (
	"embed"
	"io/fs"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/layouts"
)

//go:embed migrations/*.sql
var files embed.FS

// Layout describes the table. Set Schema or Table on the result to place it elsewhere: Django names it after its
// app, such as common_outboxevent.
func Layout() layouts.Layout {
	return layouts.Layout{
		Name:        "doorito",
		Table:       "outbox_event",
		Hold:        layouts.HoldDefer,
		Done:        layouts.DoneStatus,
		Count:       layouts.CountOnFailure,
		Terminal:    layouts.TerminalStatus,
		MaxAttempts: 5,
		Columns: layouts.Columns{
			ID:            layouts.Column{Name: "id"},
			Type:          layouts.Column{Name: "event_type", NotNull: true, MaxLength: 100},
			AggregateType: layouts.Column{Name: "aggregate_type", NotNull: true, MaxLength: 100},
			AggregateID:   layouts.Column{Name: "aggregate_id", NotNull: true, MaxLength: 100},
			DedupeKey:     layouts.Column{Name: "idempotency_key", NotNull: true, MaxLength: 255},
			Payload:       layouts.Column{Name: "payload"},
			MaxAttempts:   layouts.Column{Name: "max_attempts", NotNull: true},
			Status:        layouts.Column{Name: "status"},
			Attempts:      layouts.Column{Name: "attempts"},
			NextAttemptAt: layouts.Column{Name: "next_attempt_at"},
			LastError:     layouts.Column{Name: "error_message", NotNull: true},
			CreatedAt:     layouts.Column{Name: "created_at"},
			UpdatedAt:     layouts.Column{Name: "updated_at"},
			DeliveredAt:   layouts.Column{Name: "delivered_at"},
		},
		Dedupe: []layouts.Field{layouts.FieldType},
		States: &layouts.States{Pending: "pending", Delivered: "delivered", Dead: "failed"},
	}
}

// Migrations returns the goose migrations of a layout made by Layout, with its table name. They run in the first
// schema of the search path.
func Migrations(layout layouts.Layout) (fs.FS, error) {
	return migrations.Rename(files, map[string]string{Layout().Table: layout.Table})
}
