package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// tenant is what the chat knows of one.
type tenant struct {
	Quota    int64 `json:"quota"`
	Reserved int64 `json:"reserved"`
	Used     int64 `json:"used"`
}

func (c *chat) setQuota(ctx context.Context, id uuid.UUID, quota int64) error {
	_, err := c.pool.Exec(ctx, `INSERT INTO chat_quotas (tenant_id, tokens) VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE SET tokens = excluded.tokens`, id, quota)
	if err != nil {
		return fmt.Errorf("set the quota: %w", err)
	}
	return nil
}

func (c *chat) tenant(ctx context.Context, id uuid.UUID) (t tenant, err error) {
	err = c.pool.QueryRow(ctx, `
		SELECT coalesce(q.tokens, 0), coalesce(q.reserved, 0), coalesce(q.used, 0)
		FROM (SELECT $1::uuid AS tenant_id) AS asked LEFT JOIN chat_quotas AS q USING (tenant_id)`, id).
		Scan(&t.Quota, &t.Reserved, &t.Used)
	if err != nil {
		return t, fmt.Errorf("read the tenant: %w", err)
	}
	return t, nil
}
