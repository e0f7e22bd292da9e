// Package query has what both halves of package ops need to query the database: statements that an index serves,
// with bounded effort, and readers of their results.
package query

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// ScanLimit bounds the events that a search reads without an index for its filter.
	ScanLimit = 20_000
	// CountLimit is the highest exact count.
	CountLimit = 20_000
	// GroupLimit bounds the dead events that are grouped.
	GroupLimit = 5_000
	// SmallTable is the size, in bytes, up to which a table is counted exactly.
	SmallTable = 16 << 20
	// searchTimeout ends a slow statement: a person waits for it, and the database has other work.
	searchTimeout = "10s"
)

// Unprepared plans a statement with its actual values.
const Unprepared = pgx.QueryExecModeCacheDescribe

// ByIndexSQL makes the planner use an index whenever one serves a statement, whatever the statistics say. The plan
// then tells whether there is one.
const ByIndexSQL = `
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
  set_config('max_parallel_workers_per_gather', '0', true), set_config('statement_timeout', '` + searchTimeout + `', true)`

// ByIndex runs a function in a read-only transaction with these settings.
func ByIndex(ctx context.Context, pool *pgxpool.Pool, read func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, ByIndexSQL); err != nil {
			return err
		}
		return read(tx)
	})
}

// Args collects the parameters of a statement.
type Args []any

// Add adds a parameter and returns its placeholder.
func (a *Args) Add(value any) string {
	*a = append(*a, value)
	return fmt.Sprintf("$%d", len(*a))
}

// All returns the arguments of a call.
func (a Args) All() []any { return append([]any{Unprepared}, a...) }

// And joins the non-empty conditions.
func And(conditions ...string) string {
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

// Moment converts a time of the database; zero if it is NULL or infinite.
func Moment(t pgtype.Timestamptz) time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return t.Time.UTC()
}

// IDTime returns when an id was made, if the id tells.
func IDTime(id uuid.UUID) (at time.Time, tells bool) {
	if id.Version() != 7 {
		return time.Time{}, false
	}
	return time.Unix(id.Time().UnixTime()), true
}
