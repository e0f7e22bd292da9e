package pgsession

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Transaction is a pgstream.Transaction.
type Transaction struct {
	PID                int
	Seconds            float64
	State, Application string
}

// OldestTransaction is the client's transaction of the server that has been running longest, of those that the role may see;
// nil if there is none.
func OldestTransaction(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (*Transaction, error) {
	var t Transaction
	err := db.QueryRow(ctx, `
SELECT pid, extract(epoch FROM now() - xact_start)::float8, coalesce(state, ''), coalesce(application_name, '')
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY xact_start LIMIT 1`).Scan(&t.PID, &t.Seconds, &t.State, &t.Application)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: look for the oldest transaction: %w", err)
	}
	return &t, nil
}
