package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// tenant is what the chat knows of one, and what billing has counted.
type tenant struct {
	Quota    int64 `json:"quota"`
	Reserved int64 `json:"reserved"`
	Used     int64 `json:"used"`
	// BilledTurns and BilledTokens come later than Used: when the events are delivered.
	BilledTurns  int64 `json:"billedTurns"`
	BilledTokens int64 `json:"billedTokens"`
}

func (s *service) setQuota(ctx context.Context, id uuid.UUID, quota int64) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO chat_quotas (tenant_id, tokens) VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE SET tokens = excluded.tokens`, id, quota)
	if err != nil {
		return fmt.Errorf("set the quota: %w", err)
	}
	return nil
}

func (s *service) openAccount(ctx context.Context, id uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `INSERT INTO billing_accounts (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING`, id); err != nil {
		return fmt.Errorf("open the account: %w", err)
	}
	return nil
}

func (s *service) tenant(ctx context.Context, id uuid.UUID) (t tenant, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT coalesce(q.tokens, 0), coalesce(q.reserved, 0), coalesce(q.used, 0), coalesce(a.turns, 0), coalesce(a.tokens, 0)
		FROM (SELECT $1::uuid AS tenant_id) AS asked
		LEFT JOIN chat_quotas AS q USING (tenant_id) LEFT JOIN billing_accounts AS a USING (tenant_id)`, id).
		Scan(&t.Quota, &t.Reserved, &t.Used, &t.BilledTurns, &t.BilledTokens)
	if err != nil {
		return t, fmt.Errorf("read the tenant: %w", err)
	}
	return t, nil
}
