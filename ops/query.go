package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// scanLimit is how many events a search looks at that no index leads to what it is for.
	scanLimit = 20_000
	// countLimit is where exact counts end.
	countLimit = 20_000
	// groupLimit is how many dead events are grouped.
	groupLimit = 5_000
	// searchTimeout ends a statement that looks around: a person waits, and the database has
	// better things to do.
	searchTimeout = "10s"
)

// onTheFly plans a statement with its actual values.
const onTheFly = pgx.QueryExecModeCacheDescribe

// byIndexSQL makes the planner say whether an index serves a statement: it takes another way only
// if there is none. The same settings then run it, whatever the statistics say.
const byIndexSQL = `
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
  set_config('max_parallel_workers_per_gather', '0', true), set_config('statement_timeout', '` + searchTimeout + `', true)`

// byIndex runs a function that looks around in a transaction with these settings, which
// writes nothing.
func byIndex(ctx context.Context, pool *pgxpool.Pool, look func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIndexSQL); err != nil {
			return err
		}
		return look(tx)
	})
}

// arguments collects the parameters of a statement.
type arguments []any

// add is the placeholder of one more.
func (a *arguments) add(value any) string {
	*a = append(*a, value)
	return fmt.Sprintf("$%d", len(*a))
}

// all are the arguments of a call.
func (a arguments) all() []any { return append([]any{onTheFly}, a...) }

// both is the conjunction of conditions; those that are empty are left out.
func both(conditions ...string) string {
	list := make([]string, 0, len(conditions))
	for _, condition := range conditions {
		if condition != "" {
			list = append(list, "("+condition+")")
		}
	}
	if len(list) == 0 {
		return "true"
	}
	return strings.Join(list, " AND ")
}

// plan is a node of an EXPLAIN.
type plan struct {
	Type      string  `json:"Node Type"`
	Rows      float64 `json:"Plan Rows"`
	IndexCond string  `json:"Index Cond"`
	Filter    string  `json:"Filter"`
	Plans     []plan  `json:"Plans"`
}

// explain is the planner's answer to a statement.
func explain(ctx context.Context, tx pgx.Tx, sql string, args arguments) (*plan, error) {
	var doc []byte
	if err := tx.QueryRow(ctx, "EXPLAIN (FORMAT JSON) "+sql, args.all()...).Scan(&doc); err != nil {
		return nil, err
	}
	var list []struct{ Plan plan }
	if err := json.Unmarshal(doc, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("read a plan: %w", err)
	}
	return &list[0].Plan, nil
}

// walks reports whether a plan goes along an index in the order that was asked for, and looks
// at no row in vain.
func (p *plan) walks() bool {
	if p.Type == "Seq Scan" || p.Type == "Sort" || strings.HasPrefix(p.Type, "Bitmap") {
		return false
	}
	if strings.HasPrefix(p.Type, "Index") && p.Filter != "" {
		return false
	}
	for i := range p.Plans {
		if !p.Plans[i].walks() {
			return false
		}
	}
	return true
}

// finds reports whether a plan finds rows by a condition of an index, and by nothing else.
func (p *plan) finds() bool {
	for i := range p.Plans {
		if !p.Plans[i].finds() {
			return false
		}
	}
	return len(p.Plans) > 0 || strings.HasPrefix(p.Type, "Index") && p.IndexCond != ""
}
