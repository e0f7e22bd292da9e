package pgstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/layouts"
)

// Need is a question that relays ask of a table all the time, and that an index must answer:
// without one, each answer takes longer with every event that is kept.
type Need struct {
	// For says who asks.
	For string
	// Query is the question, for the planner.
	Query string
	// Index makes an index that answers it, without blocking writers.
	Index string
}

// Needs are the questions that an index must answer.
func Needs(l layouts.Layout) []Need {
	c := &compiler{l: &layout{l}, config: &Config{}}
	plain := func(column layouts.Column) string { return quote(column.Name) }
	order, id := c.order(), l.Columns.ID
	due := "true"
	if next := l.Columns.NextAttemptAt; !next.IsZero() {
		due = t(next) + " <= now()"
	}
	needs := []Need{{
		For: "the claim, which takes the oldest events that wait",
		Query: fmt.Sprintf("SELECT FROM %s AS t WHERE %s AND %s ORDER BY %s, %s LIMIT 1",
			c.table(), c.pending(), due, t(order), t(id)),
		Index: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s, %s) WHERE %s;",
			c.table(), plain(order), plain(id), c.pendingBy(plain)),
	}}
	if l.Hold == layouts.HoldLease {
		until := l.Columns.LockedUntil
		needs = append(needs, Need{
			For: "the claim, which takes events back whose lease is over",
			Query: fmt.Sprintf("SELECT FROM %s AS t WHERE %s AND %s < now() ORDER BY %s LIMIT 1",
				c.table(), c.leased(), t(until), t(until)),
			Index: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s) WHERE %s;", c.table(), plain(until), c.leasedBy(plain)),
		})
	}
	if l.DeadLetter != nil {
		event := quote(l.DeadLetter.Columns.EventID.Name)
		needs = append(needs, Need{
			For: "the claim, which leaves out events that have a dead letter",
			Query: fmt.Sprintf("SELECT FROM %s AS d WHERE d.%s = '00000000-0000-0000-0000-000000000000' LIMIT 1",
				c.letters(), event),
			Index: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s);", c.letters(), event),
		})
	}
	return needs
}

// Key is a set of columns that must be unique together: emit relies on it to tell an event
// that is there already.
type Key struct {
	// For says what would be there twice.
	For string
	// Columns are the columns' names.
	Columns []string
	// Index makes the index, without blocking writers.
	Index string
}

// Keys are what must be unique in the layout's table.
func Keys(l layouts.Layout) []Key {
	keys := []Key{{For: "an event's id", Columns: []string{l.Columns.ID.Name}}}
	if dedupe := l.Columns.DedupeKey; !dedupe.IsZero() {
		var columns []string
		for _, field := range l.Dedupe {
			columns = append(columns, l.Column(field).Name)
		}
		keys = append(keys, Key{For: "a dedupe key", Columns: append(columns, dedupe.Name)})
	}
	for i := range keys {
		names := slices.Clone(keys[i].Columns)
		for j := range names {
			names[j] = quote(names[j])
		}
		keys[i].Index = fmt.Sprintf("CREATE UNIQUE INDEX CONCURRENTLY ON %s (%s);", sqlname.Qualified(l.Schema, l.Table), strings.Join(names, ", "))
	}
	return keys
}
