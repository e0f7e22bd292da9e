package licensing

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/packfinderz/internal/database"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// Fits refuses a database with other tables than the service needs: every request would fail.
func Fits(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	if err := database.FitsEmit(ctx, pool, log); err != nil {
		return err
	}
	return database.Fits(ctx, pool, log, statements()...)
}

// Ready returns why PostgreSQL could not run the service's statements, or nil.
func Ready(ctx context.Context, pool *pgxpool.Pool) error {
	return database.Ready(ctx, pool, statements()...)
}

func statements() []database.Statement {
	return []database.Statement{
		{
			SQL:  `INSERT INTO stores (id, name) VALUES ($1, $2) RETURNING created_at`,
			Args: []any{uuid.Nil, ""},
		},
		{
			SQL: `INSERT INTO licenses (id, store_id, number, status, reason) VALUES ($1, $2, $3, $4, $5)
				RETURNING created_at, updated_at`,
			Args: []any{uuid.Nil, uuid.Nil, "", string(payloads.LicensePending), ""},
		},
		{
			SQL: `SELECT id, event_id, type, audience, store_id, status, reason, message, created_at
				FROM notifications WHERE license_id = $1 ORDER BY created_at, id`,
			Args: []any{uuid.Nil},
		},
	}
}
