package sqlplan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Plan is a node of an EXPLAIN.
type Plan struct {
	Type      string  `json:"Node Type"`
	Rows      float64 `json:"Plan Rows"`
	Cost      float64 `json:"Total Cost"`
	IndexCond string  `json:"Index Cond"`
	Filter    string  `json:"Filter"`
	Plans     []Plan  `json:"Plans"`
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Explain returns the planner's plan of a statement.
func Explain(ctx context.Context, db Querier, sql string, args ...any) (*Plan, error) {
	var doc []byte
	if err := db.QueryRow(ctx, "EXPLAIN (FORMAT JSON) "+sql, args...).Scan(&doc); err != nil {
		return nil, err
	}
	var list []struct{ Plan Plan }
	if err := json.Unmarshal(doc, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("read a plan: %w", err)
	}
	return &list[0].Plan, nil
}

// Walks reports whether a plan follows an index in the requested order, and discards no rows.
func (p *Plan) Walks() bool {
	if p.Type == "Seq Scan" || p.Type == "Sort" || strings.HasPrefix(p.Type, "Bitmap") {
		return false
	}
	if strings.HasPrefix(p.Type, "Index") && p.Filter != "" {
		return false
	}
	for i := range p.Plans {
		if !p.Plans[i].Walks() {
			return false
		}
	}
	return true
}

// Finds reports whether a plan finds rows only by a condition of an index.
func (p *Plan) Finds() bool {
	for i := range p.Plans {
		if !p.Plans[i].Finds() {
			return false
		}
	}
	return len(p.Plans) > 0 || strings.HasPrefix(p.Type, "Index") && p.IndexCond != ""
}

// Has reports whether a plan has a node of one of these types.
func (p *Plan) Has(types ...string) bool {
	return slices.Contains(types, p.Type) || slices.ContainsFunc(p.Plans, func(child Plan) bool { return child.Has(types...) })
}
