package modkit

import (
	"embed"
	"io/fs"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/layouts"
)

//go:embed migrations/*.sql
var files embed.FS

// Layout describes the table. Set Schema or Table on the result to place it elsewhere.
func Layout() layouts.Layout {
	return layouts.Layout{
		Name:        "modkit",
		Table:       "modkit_outbox_events",
		Hold:        layouts.HoldLease,
		Done:        layouts.DoneStatus,
		Count:       layouts.CountOnClaim,
		Terminal:    layouts.TerminalStatus,
		MaxAttempts: 10,
		Columns: layouts.Columns{
			ID:            layouts.Column{Name: "id"},
			Namespace:     layouts.Column{Name: "namespace", NotNull: true},
			Topic:         layouts.Column{Name: "topic", NotNull: true},
			TenantID:      layouts.Column{Name: "tenant_id"},
			DedupeKey:     layouts.Column{Name: "dedupe_key"},
			Payload:       layouts.Column{Name: "payload"},
			Status:        layouts.Column{Name: "status"},
			Attempts:      layouts.Column{Name: "attempts"},
			NextAttemptAt: layouts.Column{Name: "next_attempt_at", NotNull: true},
			LockedBy:      layouts.Column{Name: "locked_by"},
			LockedUntil:   layouts.Column{Name: "locked_until"},
			LastError:     layouts.Column{Name: "last_error"},
			CreatedAt:     layouts.Column{Name: "created_at"},
			UpdatedAt:     layouts.Column{Name: "updated_at"},
		},
		Dedupe: []layouts.Field{layouts.FieldNamespace, layouts.FieldTopic},
		States: &layouts.States{Pending: "pending", Processing: "processing", Delivered: "delivered", Dead: "dead"},
	}
}

// Migrations returns the goose migrations of a layout made by Layout, with its table name. They run in the first
// schema of the search path.
func Migrations(layout layouts.Layout) (fs.FS, error) {
	return migrations.Rename(files, map[string]string{Layout().Table: layout.Table})
}
