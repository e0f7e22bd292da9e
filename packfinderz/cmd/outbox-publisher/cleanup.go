package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstore"
)

// cleanup deletes published rows that are older than their retention, and dead letters if they have one, in small
// steps. It never deletes an event that waits.
func cleanup(ctx context.Context, lookup func(string) (string, bool), log *slog.Logger) error {
	config, err := readCleanupConfig(lookup)
	if err != nil {
		return err
	}
	tables, store, err := open(ctx, config.database, config.layout, pgstore.Config{})
	if err != nil {
		return err
	}
	defer tables.Pool().Close()
	deleted, err := store.Purge(ctx, outbox.Purge{Retention: config.published, DeadLetterRetention: config.dead})
	if err != nil {
		err = fmt.Errorf("clean up: %w", err)
		// PostgreSQL names the table, and not the right that the role lacks on it.
		if lacks := doctor.Rights(ctx, tables, doctor.UsePurge); errors.Is(lacks, doctor.ErrRights) {
			err = errors.Join(err, lacks)
		}
		return err
	}
	log.Info("cleaned up", "deleted", deleted, "retention", config.published.String(), "dlq_retention", config.dead.String())
	return nil
}
