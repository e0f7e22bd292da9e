package sqlplan

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// mostCost is the most that CountIfCheap spends, in the planner's units: enough to read some hundred thousand rows.
const mostCost = 50_000

// CountIfCheap runs a statement that counts, unless the planner expects it to read a large table as a whole: then it
// returns outbox.NotCounted.
func CountIfCheap(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any) (n int64, err error) {
	var doc []byte
	if err := db.QueryRow(ctx, "EXPLAIN (FORMAT JSON) "+sql, args...).Scan(&doc); err != nil {
		return 0, err
	}
	var plans []struct {
		Plan struct {
			TotalCost float64 `json:"Total Cost"`
		}
	}
	if err := json.Unmarshal(doc, &plans); err != nil {
		return 0, fmt.Errorf("read a plan: %w", err)
	}
	if len(plans) != 1 || plans[0].Plan.TotalCost > mostCost {
		return outbox.NotCounted, nil
	}
	err = db.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}
