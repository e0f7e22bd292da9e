package modkit

import (
	"embed"
	"io/fs"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/pgstore"
)

//go:embed migrations/*.sql
var files embed.FS

// Layout describes the table. Set Schema or Table on the result to place it elsewhere.
func Layout() pgstore.Layout {
	return pgstore.Layout{
		Name:        "modkit",
		Table:       "modkit_outbox_events",
		Hold:        pgstore.HoldLease,
		Done:        pgstore.DoneStatus,
		Count:       pgstore.CountOnClaim,
		Terminal:    pgstore.TerminalStatus,
		MaxAttempts: 10,
		Columns: pgstore.Columns{
			ID:            pgstore.Column{Name: "id"},
			Namespace:     pgstore.Column{Name: "namespace", NotNull: true},
			Topic:         pgstore.Column{Name: "topic", NotNull: true},
			TenantID:      pgstore.Column{Name: "tenant_id"},
			DedupeKey:     pgstore.Column{Name: "dedupe_key"},
			Payload:       pgstore.Column{Name: "payload"},
			Status:        pgstore.Column{Name: "status"},
			Attempts:      pgstore.Column{Name: "attempts"},
			NextAttemptAt: pgstore.Column{Name: "next_attempt_at", NotNull: true},
			LockedBy:      pgstore.Column{Name: "locked_by"},
			LockedUntil:   pgstore.Column{Name: "locked_until"},
			LastError:     pgstore.Column{Name: "last_error"},
			CreatedAt:     pgstore.Column{Name: "created_at"},
			UpdatedAt:     pgstore.Column{Name: "updated_at"},
		},
		Dedupe: []pgstore.Field{pgstore.FieldNamespace, pgstore.FieldTopic},
		States: &pgstore.States{Pending: "pending", Processing: "processing", Delivered: "delivered", Dead: "dead"},
	}
}

// Migrations are the goose migrations of a layout made by Layout, with its table name.
// They run in the schema that is first in the search path.
func Migrations(layout pgstore.Layout) (fs.FS, error) {
	return migrations.Rename(files, map[string]string{Layout().Table: layout.Table})
}
