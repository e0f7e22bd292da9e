package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
	"github.com/packfinderz/outbox/pgstore"
)

// FitsEmit is Fits for the outbox's tables, for a program that emits with every change.
func FitsEmit(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, fitsTimeout)
	defer cancel()
	err := pgstore.VerifyEmit(ctx, pool, registry.Layout())
	switch {
	case errors.Is(err, pgstore.ErrNoTable):
		log.Warn("a table of the outbox is not there yet, and nothing can be emitted without it: run api migrate", "error", err)
	case errors.Is(err, pgstore.ErrMismatch):
		return fmt.Errorf("%w: the tables are not the outbox's: %w", env.ErrUsage, err)
	case err != nil:
		log.Warn("PostgreSQL does not answer yet", "error", err)
	}
	return nil
}
