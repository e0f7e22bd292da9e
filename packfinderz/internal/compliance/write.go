package compliance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/packfinderz/internal/database"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// writeSQL keeps an existing notification. This, not Redis, guarantees that there is only one: Redis can forget, and a
// consumer can be killed before it marks the event.
const writeSQL = `
INSERT INTO notifications (event_id, type, audience, store_id, license_id, status, reason, message)
VALUES ($1, 'compliance', $2, $3, $4, $5, $6, $7)
ON CONFLICT (event_id, audience) DO NOTHING`

// write writes the notification of an event; wrote is false if it existed already.
func (h *Handler) write(
	ctx context.Context, message *outbox.Message, change *payloads.LicenseStatusChanged, told notice,
) (wrote bool, err error) {
	tag, err := h.pool.Exec(ctx, writeSQL,
		message.ID, told.audience, change.StoreID, change.LicenseID, string(change.Status), change.Reason, told.message)
	if err != nil {
		return false, classify(fmt.Errorf("write the notification: %w", err))
	}
	return tag.RowsAffected() == 1, nil
}

// Fits refuses a database whose table notifications is another one: every event would fail.
func Fits(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	return database.Fits(ctx, pool, log, writes())
}

// Ready returns why PostgreSQL would not let the handler write, or nil.
func Ready(ctx context.Context, pool *pgxpool.Pool) error { return database.Ready(ctx, pool, writes()) }

func writes() database.Statement {
	return database.Statement{SQL: writeSQL, Args: []any{uuid.Nil, audienceAdmin, uuid.Nil, uuid.Nil, string(payloads.LicensePending), "", ""}}
}

// classify blames the event only for a character that the database's encoding lacks: everything else about it was
// checked before. Any other error (an outage, a full disk, a missing right, a new constraint) must not make a dead
// letter.
func classify(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == notInRepertoire || refused.Code == untranslatable) {
		return outbox.Terminal(err)
	}
	return outbox.Unavailable(err)
}

// The SQLSTATEs of characters that cannot be stored.
const (
	notInRepertoire = "22021"
	untranslatable  = "22P05"
)
