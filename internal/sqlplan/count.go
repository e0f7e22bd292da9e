package sqlplan

import (
	"context"

	"github.com/packfinderz/outbox"
)

// mostCost is the most that CountIfCheap spends, in the planner's units: enough to read some hundred thousand rows.
const mostCost = 50_000

// CountIfCheap runs a statement that counts, unless the planner expects it to read a large table as a whole: then it
// returns outbox.NotCounted.
func CountIfCheap(ctx context.Context, db Querier, sql string, args ...any) (n int64, err error) {
	plan, err := Explain(ctx, db, sql, args...)
	if err != nil {
		return 0, err
	}
	if plan.Cost > mostCost {
		return outbox.NotCounted, nil
	}
	err = db.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}
