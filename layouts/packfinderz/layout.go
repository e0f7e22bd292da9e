// Package packfinderz is the outbox table of the PackFinderz contract: an append-only table with enum types, rows
// held by row locks, and a dead-letter table.
package packfinderz

import (
	"embed"
	"io/fs"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/layouts"
)

//go:embed migrations/*.sql
var files embed.FS

// Layout describes the table. Set Schema, Table or DeadLetter.Table on the result to
// place it elsewhere.
func Layout() layouts.Layout {
	return layouts.Layout{
		Name:        "packfinderz",
		Table:       "outbox_events",
		Hold:        layouts.HoldRowLock,
		Done:        layouts.DoneTimestamp,
		Count:       layouts.CountOnFailure,
		Terminal:    layouts.TerminalDeadLetter,
		MaxAttempts: 10,
		Columns: layouts.Columns{
			ID:            layouts.Column{Name: "id"},
			Type:          layouts.Column{Name: "event_type", Enum: "event_type_enum", NotNull: true, Values: eventTypes()},
			AggregateType: layouts.Column{Name: "aggregate_type", Enum: "aggregate_type_enum", NotNull: true, Values: aggregateTypes()},
			AggregateID:   layouts.Column{Name: "aggregate_id", Type: "uuid", NotNull: true},
			Payload:       layouts.Column{Name: "payload_json"},
			Attempts:      layouts.Column{Name: "attempt_count"},
			LastError:     layouts.Column{Name: "last_error"},
			CreatedAt:     layouts.Column{Name: "created_at"},
			DeliveredAt:   layouts.Column{Name: "published_at"},
		},
		DeadLetter: &layouts.DeadLetter{
			Table: "outbox_dlq",
			Columns: layouts.DeadLetterColumns{
				ID:            layouts.Column{Name: "id"},
				EventID:       layouts.Column{Name: "event_id"},
				Type:          layouts.Column{Name: "event_type"},
				AggregateType: layouts.Column{Name: "aggregate_type"},
				AggregateID:   layouts.Column{Name: "aggregate_id"},
				Payload:       layouts.Column{Name: "payload_json"},
				Reason:        layouts.Column{Name: "error_reason", Enum: "outbox_dlq_reason_enum", Values: names(Reasons())},
				FailedAt:      layouts.Column{Name: "failed_at"},
				CreatedAt:     layouts.Column{Name: "created_at"},
				Attempts:      layouts.Column{Name: "attempt_count"},
				LastError:     layouts.Column{Name: "last_error"},
				RetriedAt:     layouts.Column{Name: "retried_at"},
			},
		},
	}
}

// Migrations returns the goose migrations of a layout made by Layout, with its table names. They run in the first
// schema of the search path.
func Migrations(layout layouts.Layout) (fs.FS, error) {
	original := Layout()
	return migrations.Rename(files, map[string]string{
		original.Table:            layout.Table,
		original.DeadLetter.Table: layout.DeadLetter.Table,
	})
}
