package cli

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/admin"
)

// console is every subscription, or the one that is named.
func (s stream) console(ctx context.Context, pool *pgxpool.Pool, subscription string) ([]admin.Target, error) {
	if err := s.verify(ctx, pool, false); err != nil {
		return nil, err
	}
	names, err := s.named(ctx, pool, subscription)
	if err != nil {
		return nil, err
	}
	targets := make([]admin.Target, len(names))
	for i, name := range names {
		operations, err := s.operate(ctx, pool, name)
		if err != nil {
			return nil, err
		}
		targets[i] = admin.Target{Name: name, Operations: operations}
	}
	return targets, nil
}

// console is the table.
func (q queueTable) console(ctx context.Context, pool *pgxpool.Pool, subscription string) ([]admin.Target, error) {
	operations, err := q.operations(ctx, pool, subscription)
	return []admin.Target{{Name: q.Table, Operations: operations}}, err
}
