// Package packfinderz is the outbox table of the PackFinderz contract: an
// append-only table with enum types, rows held by row locks, and a dead-letter
// table for events that will never be published.
package packfinderz

import (
	"embed"
	"io/fs"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/pgstore"
)

//go:embed migrations/*.sql
var files embed.FS

// Layout describes the table. Set Schema, Table or DeadLetter.Table on the result to
// place it elsewhere.
func Layout() pgstore.Layout {
	return pgstore.Layout{
		Name:        "packfinderz",
		Table:       "outbox_events",
		Hold:        pgstore.HoldRowLock,
		Done:        pgstore.DoneTimestamp,
		Count:       pgstore.CountOnFailure,
		Terminal:    pgstore.TerminalDeadLetter,
		MaxAttempts: 10,
		Columns: pgstore.Columns{
			ID:            pgstore.Column{Name: "id"},
			Type:          pgstore.Column{Name: "event_type", Enum: "event_type_enum", NotNull: true, Values: eventTypes()},
			AggregateType: pgstore.Column{Name: "aggregate_type", Enum: "aggregate_type_enum", NotNull: true, Values: aggregateTypes()},
			AggregateID:   pgstore.Column{Name: "aggregate_id", Type: "uuid", NotNull: true},
			Payload:       pgstore.Column{Name: "payload_json"},
			Attempts:      pgstore.Column{Name: "attempt_count"},
			LastError:     pgstore.Column{Name: "last_error"},
			CreatedAt:     pgstore.Column{Name: "created_at"},
			DeliveredAt:   pgstore.Column{Name: "published_at"},
		},
		DeadLetter: &pgstore.DeadLetter{
			Table: "outbox_dlq",
			Columns: pgstore.DeadLetterColumns{
				ID:            pgstore.Column{Name: "id"},
				EventID:       pgstore.Column{Name: "event_id"},
				Type:          pgstore.Column{Name: "event_type"},
				AggregateType: pgstore.Column{Name: "aggregate_type"},
				AggregateID:   pgstore.Column{Name: "aggregate_id"},
				Payload:       pgstore.Column{Name: "payload_json"},
				Reason:        pgstore.Column{Name: "error_reason", Enum: "outbox_dlq_reason_enum", Values: names(Reasons())},
				FailedAt:      pgstore.Column{Name: "failed_at"},
				CreatedAt:     pgstore.Column{Name: "created_at"},
				Attempts:      pgstore.Column{Name: "attempt_count"},
				LastError:     pgstore.Column{Name: "last_error"},
				RetriedAt:     pgstore.Column{Name: "retried_at"},
			},
		},
	}
}

// Migrations are the goose migrations of a layout made by Layout, with its table names.
// They run in the schema that is first in the search path.
func Migrations(layout pgstore.Layout) (fs.FS, error) {
	original := Layout()
	return migrations.Rename(files, map[string]string{
		original.Table:            layout.Table,
		original.DeadLetter.Table: layout.DeadLetter.Table,
	})
}
