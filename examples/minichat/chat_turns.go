package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/layouts/modkit"
)

var (
	errOverQuota   = errors.New("the tenant's quota does not suffice")
	errUnknownTurn = errors.New("there is no such turn")
	errOutcome     = errors.New("the outcome is none of completed, failed and aborted")
)

// tokens is the price of a text: its words.
func tokens(text string) int64 { return int64(len(strings.Fields(text))) }

// begin reserves what a turn may use. A turn that the quota has no room for is refused before it
// has any effect, and so has no message. Beginning a turn again changes nothing.
func (c *chat) begin(ctx context.Context, t turn, prompt string) error {
	reserve := 2*tokens(prompt) + 10
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO chat_turns (tenant_id, turn_id, request_id, prompt, reserved)
			SELECT tenant_id, $2, $3, $4, $5 FROM chat_quotas WHERE tenant_id = $1
			ON CONFLICT DO NOTHING`, t.Tenant, t.Turn, t.Request, prompt, reserve)
		if err != nil {
			return fmt.Errorf("store the turn: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return c.exists(ctx, tx, t)
		}
		tag, err = tx.Exec(ctx, `UPDATE chat_quotas SET reserved = reserved + $2
			WHERE tenant_id = $1 AND used + reserved + $2 <= tokens`, t.Tenant, reserve)
		if err != nil {
			return fmt.Errorf("reserve from the quota: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errOverQuota
		}
		return nil
	})
}

// exists tells a turn that was begun before from a tenant without a quota.
func (c *chat) exists(ctx context.Context, tx pgx.Tx, t turn) (err error) {
	var found bool
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM chat_turns WHERE (tenant_id, turn_id, request_id) = ($1, $2, $3))`,
		t.Tenant, t.Turn, t.Request).Scan(&found)
	switch {
	case err != nil:
		return fmt.Errorf("look for the turn: %w", err)
	case !found:
		return errOverQuota
	}
	return nil
}

// finalise ends a turn: what it used and the message that tells of it are in one transaction. The
// first finalisation counts. A second one, such as a client's that got no answer, finds what the
// first has written, and its message already enqueued.
func (c *chat) finalise(ctx context.Context, t turn, outcome, reply string) (u usage, event modkit.Enqueued, err error) {
	if !slices.Contains([]string{"completed", "failed", "aborted"}, outcome) {
		return u, event, errOutcome
	}
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if u, err = c.settleTurn(ctx, tx, t, outcome, reply); err != nil {
			return err
		}
		payload, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("write the message: %w", err)
		}
		enqueued, err := c.module.Enqueue(ctx, tx, modkit.Message{
			Topic: topic, TenantID: t.Tenant, DedupeKey: t.dedupeKey(), Payload: payload,
		})
		if err == nil {
			event = enqueued[0]
		}
		return err
	})
	c.dispatcher.Nudge()
	return u, event, err
}

// settleTurn writes the outcome and what was used, unless that was done before. What was used is
// the server's own count, never a client's.
func (c *chat) settleTurn(ctx context.Context, tx pgx.Tx, t turn, outcome, reply string) (usage, error) {
	u := usage{turn: t, Outcome: outcome}
	var prompt string
	var earlier *string
	var used *int64
	var reserved int64
	err := tx.QueryRow(ctx, `SELECT prompt, outcome, tokens, reserved FROM chat_turns
		WHERE (tenant_id, turn_id, request_id) = ($1, $2, $3) FOR UPDATE`, t.Tenant, t.Turn, t.Request).
		Scan(&prompt, &earlier, &used, &reserved)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return u, errUnknownTurn
	case err != nil:
		return u, fmt.Errorf("read the turn: %w", err)
	case earlier != nil && used != nil:
		u.Outcome, u.Tokens = *earlier, *used
		return u, nil
	}
	u.Tokens = min(tokens(prompt)+tokens(reply), reserved)
	if _, err := tx.Exec(ctx, `UPDATE chat_turns SET outcome = $4, tokens = $5
		WHERE (tenant_id, turn_id, request_id) = ($1, $2, $3)`, t.Tenant, t.Turn, t.Request, u.Outcome, u.Tokens); err != nil {
		return u, fmt.Errorf("end the turn: %w", err)
	}
	if _, err := tx.Exec(ctx, `UPDATE chat_quotas SET reserved = reserved - $2, used = used + $3 WHERE tenant_id = $1`,
		t.Tenant, reserved, u.Tokens); err != nil {
		return u, fmt.Errorf("write what was used: %w", err)
	}
	return u, nil
}
