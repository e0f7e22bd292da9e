package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// bill is the other end: the dispatcher hands it every event. It may be given one twice, so that
// it counts a turn only if it has not counted it before, in the same transaction.
func (s *service) bill(ctx context.Context, message modkit.ClaimedMessage) error {
	var u usage
	if err := json.Unmarshal(message.Payload, &u); err != nil {
		return outbox.Terminal(fmt.Errorf("read the usage: %w", err))
	}
	if u.dedupeKey() != message.DedupeKey {
		return outbox.Terminal(fmt.Errorf("the usage is of %s, and the event of %s", u.dedupeKey(), message.DedupeKey))
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var account bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM billing_accounts WHERE tenant_id = $1)`, u.Tenant).Scan(&account)
		if err != nil {
			return fmt.Errorf("look for the account: %w", err)
		}
		if !account {
			return errors.New("the tenant has no billing account")
		}
		tag, err := tx.Exec(ctx, `INSERT INTO billing_usage (tenant_id, turn_id, request_id, outcome, tokens)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, u.Tenant, u.Turn, u.Request, u.Outcome, u.Tokens)
		if err != nil {
			return fmt.Errorf("note the usage: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil // counted before
		}
		_, err = tx.Exec(ctx, `UPDATE billing_accounts SET turns = turns + 1, tokens = tokens + $2 WHERE tenant_id = $1`, u.Tenant, u.Tokens)
		if err != nil {
			return fmt.Errorf("count the usage: %w", err)
		}
		return nil
	})
}
