package pgstore

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// statement is compiled SQL. Its first parameters come with each call. The rest (worker, lease, filter) are the same for
// every call of a store, and are kept here.
type statement struct {
	sql       string
	constants []any
}

// with are the arguments of one call.
func (s *statement) with(args ...any) []any { return append(args, s.constants...) }

// fresh is with, for a call that has the statement planned for its values; see onTheFly.
func (s *statement) fresh(args ...any) []any { return append([]any{onTheFly}, s.with(args...)...) }

// statements are a layout's SQL.
type statements struct {
	claimDue, claimDueFrom, claimExpired claims
	peek, dead                           *statement
	locked, byCtid, byID                 settles
	push, renew                          *statement
	farLeases, endLeases                 *statement
	sweep                                *statement
	purge, purgeCount                    *statement
	purgeLetters, purgeLettersCount      *statement
	stats                                *statement
	timeless, unknown                    *statement
	lockAgain                            *statement
	retry                                *statement
}

func compile(l *tablesql.Layout, config *Config) *statements {
	c := &compiler{l: l, config: config}
	return &statements{
		claimDue:          c.claims(claimDue),
		claimDueFrom:      c.claims(claimDueFrom),
		claimExpired:      c.claims(claimExpired),
		peek:              c.peek(),
		dead:              c.dead(),
		locked:            c.locked(),
		byCtid:            c.marked(true),
		byID:              c.marked(false),
		push:              c.push(),
		renew:             c.renew(),
		farLeases:         c.farLeases(),
		endLeases:         c.endLeases(),
		sweep:             c.sweep(),
		purge:             c.purge(false),
		purgeCount:        c.purge(true),
		purgeLetters:      c.purgeLetters(false),
		purgeLettersCount: c.purgeLetters(true),
		stats:             c.stats(),
		lockAgain:         c.lockAgain(),
		timeless:          c.timeless(),
		unknown:           c.unknown(),
		retry:             c.retry(),
	}
}

// compiler makes the statements of one store. begin takes the number of parameters that each call brings.
type compiler struct {
	l         *tablesql.Layout
	config    *Config
	free      int
	constants []any
}

func (c *compiler) begin(free int) { c.free, c.constants = free, nil }

func (c *compiler) end(sql string) *statement {
	return &statement{sql: sql, constants: c.constants}
}

// constant adds a parameter that is the same for every call.
func (c *compiler) constant(value any, cast string) string {
	c.constants = append(c.constants, value)
	return fmt.Sprintf("$%d::%s", c.free+len(c.constants), cast)
}

// worker and until are selected, so that they are computed once and not for every row.
func (c *compiler) worker() string {
	return fmt.Sprintf("(SELECT %s::%s)", c.constant(c.config.WorkerID.String(), "text"), c.l.Columns.LockedBy.SQLType(layouts.FieldLockedBy))
}

// until is the end of a lease that begins now, by one clock or the other.
func (c *compiler) until(now string) string { return "(SELECT " + now + " + " + c.lease() + ")" }

func (c *compiler) lease() string {
	return fmt.Sprintf("make_interval(secs => %s)", c.constant(c.config.Lease.Seconds(), "float8"))
}

// maxAttempts is the maximum in force for a row.
func (c *compiler) maxAttempts() string {
	fallback := c.constant(c.config.MaxAttempts, "int")
	if c.l.Columns.MaxAttempts.IsZero() {
		return fallback
	}
	return fmt.Sprintf("coalesce(%s, %s)", t(c.l.Columns.MaxAttempts), fallback)
}

// attempts is how many were counted for a row. A table that lets it be NULL means none.
func (c *compiler) attempts() string { return "coalesce(" + t(c.l.Columns.Attempts) + ", 0)" }

// claimable is NotDead for a claim. It is a scalar subquery: the planner must not read all letters into a hash for the
// few rows of a claim. It looks up every row: a letter that somebody wrote in SQL leaves no trace in the row.
func (c *compiler) claimable() string {
	if c.l.DeadLetter == nil {
		return "true"
	}
	columns := &c.l.DeadLetter.Columns
	return fmt.Sprintf("(SELECT true FROM %s d WHERE d.%s = %s AND %s LIMIT 1) IS NULL",
		c.l.Letters(), quote(columns.EventID.Name), t(c.l.Columns.ID), c.l.OpenLetter())
}

// mine limits rows to what this store serves.
func (c *compiler) mine() string {
	filter, columns := &c.config.Filter, &c.l.Columns
	where := []string{"true"}
	if filter.Namespace != "" {
		where = append(where, t(columns.Namespace)+" = "+c.constant(filter.Namespace, "text"))
	}
	if len(filter.Topics) > 0 {
		where = append(where, fmt.Sprintf("%s = ANY(%s)", t(columns.Topic), c.constant(filter.Topics, "text[]")))
	}
	if filter.TenantID != uuid.Nil {
		where = append(where, t(columns.TenantID)+" = "+c.constant(filter.TenantID.String(), "text")+"::uuid")
	}
	return strings.Join(where, " AND ")
}

// mineOfLetters limits dead letters to those of events that this store serves. Only a store of all events takes a letter
// whose event is gone.
func (c *compiler) mineOfLetters() string {
	mine := c.mine()
	if mine == "true" {
		return mine
	}
	return fmt.Sprintf("EXISTS (SELECT FROM %s AS t WHERE %s = d.%s AND %s)",
		c.l.Events(), t(c.l.Columns.ID), quote(c.l.DeadLetter.Columns.EventID.Name), mine)
}

// assignments are the SET part of an UPDATE; columns the table lacks are left out.
type assignments []string

func (a *assignments) set(column layouts.Column, value string) {
	if !column.IsZero() {
		*a = append(*a, quote(column.Name)+" = "+value)
	}
}

func (a assignments) String() string { return strings.Join(a, ", ") }

func quote(name string) string       { return sqlname.Quote(name) }
func literal(text string) string     { return sqlname.Literal(text) }
func t(column layouts.Column) string { return tablesql.T(column) } // every statement calls the table t
