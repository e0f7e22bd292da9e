// Package doorito is the outbox table of the Doorito contract: a Django model with
// a status, a due time that also serves as the hold, and a maximum of attempts in
// every row.
package doorito

import (
	"embed"
	"io/fs"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/pgstore"
)

//go:embed migrations/*.sql
var files embed.FS

// Layout describes the table. Set Schema or Table on the result to place it elsewhere:
// Django calls it after its app, such as common_outboxevent.
func Layout() pgstore.Layout {
	return pgstore.Layout{
		Name:        "doorito",
		Table:       "outbox_event",
		Hold:        pgstore.HoldDefer,
		Done:        pgstore.DoneStatus,
		Count:       pgstore.CountOnFailure,
		Terminal:    pgstore.TerminalStatus,
		MaxAttempts: 5,
		Columns: pgstore.Columns{
			ID:            pgstore.Column{Name: "id"},
			Type:          pgstore.Column{Name: "event_type", NotNull: true, MaxLength: 100},
			AggregateType: pgstore.Column{Name: "aggregate_type", NotNull: true, MaxLength: 100},
			AggregateID:   pgstore.Column{Name: "aggregate_id", NotNull: true, MaxLength: 100},
			DedupeKey:     pgstore.Column{Name: "idempotency_key", NotNull: true, MaxLength: 255},
			Payload:       pgstore.Column{Name: "payload"},
			MaxAttempts:   pgstore.Column{Name: "max_attempts", NotNull: true},
			Status:        pgstore.Column{Name: "status"},
			Attempts:      pgstore.Column{Name: "attempts"},
			NextAttemptAt: pgstore.Column{Name: "next_attempt_at"},
			LastError:     pgstore.Column{Name: "error_message", NotNull: true},
			CreatedAt:     pgstore.Column{Name: "created_at"},
			UpdatedAt:     pgstore.Column{Name: "updated_at"},
			DeliveredAt:   pgstore.Column{Name: "delivered_at"},
		},
		Dedupe: []pgstore.Field{pgstore.FieldType},
		States: &pgstore.States{Pending: "pending", Delivered: "delivered", Dead: "failed"},
	}
}

// Migrations are the goose migrations of a layout made by Layout, with its table name.
// They run in the schema that is first in the search path.
func Migrations(layout pgstore.Layout) (fs.FS, error) {
	return migrations.Rename(files, map[string]string{Layout().Table: layout.Table})
}
