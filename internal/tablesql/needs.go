package tablesql

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/layouts"
)

// Need is a query that relays run all the time and that an index must serve: without one, it takes longer with every event
// that is kept.
type Need struct {
	// For says who runs it.
	For string
	// Query is the query, for the planner.
	Query string
	// Index makes an index that serves it, without blocking writers.
	Index string
}

// Needs are the queries that an index must serve.
func (l *Layout) Needs() []Need {
	needs := []Need{{
		For:   "the claim, which takes the oldest events that wait",
		Query: fmt.Sprintf("SELECT FROM %s AS t WHERE %s AND %s ORDER BY %s, %s LIMIT 1", l.Events(), l.Pending(T), l.Due(), T(l.Order()), T(l.Columns.ID)),
		Index: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s, %s) WHERE %s;", l.Events(), Name(l.Order()), Name(l.Columns.ID), l.Pending(Name)),
	}}
	if until := l.Columns.LockedUntil; l.Hold == layouts.HoldLease {
		needs = append(needs, Need{
			For:   "the claim, which takes events back whose lease is over",
			Query: fmt.Sprintf("SELECT FROM %s AS t WHERE %s AND %s < now() ORDER BY %[3]s LIMIT 1", l.Events(), l.Leased(T), T(until)),
			Index: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s) WHERE %s;", l.Events(), Name(until), l.Leased(Name)),
		})
	}
	if l.DeadLetter != nil {
		event := Name(l.DeadLetter.Columns.EventID)
		needs = append(needs, Need{
			For:   "the claim, which leaves out events that have a dead letter",
			Query: fmt.Sprintf("SELECT FROM %s AS d WHERE d.%s = '00000000-0000-0000-0000-000000000000' LIMIT 1", l.Letters(), event),
			Index: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s);", l.Letters(), event),
		})
	}
	return needs
}

// Key is a set of columns that must be unique together: by it, emit recognizes an event that is there already.
type Key struct {
	// For says what would be there twice.
	For string
	// Columns are the columns' names.
	Columns []string
	// Index makes the index, without blocking writers.
	Index string
}

// Keys are what must be unique in the table.
func (l *Layout) Keys() []Key {
	keys := []Key{l.key("an event's id", l.Columns.ID)}
	if !l.Columns.DedupeKey.IsZero() {
		var columns []layouts.Column
		for _, field := range l.Dedupe {
			columns = append(columns, l.Column(field))
		}
		keys = append(keys, l.key("a dedupe key", append(columns, l.Columns.DedupeKey)...))
	}
	return keys
}

func (l *Layout) key(what string, columns ...layouts.Column) Key {
	var names, quoted []string
	for _, column := range columns {
		names, quoted = append(names, column.Name), append(quoted, Name(column))
	}
	return Key{what, names, fmt.Sprintf("CREATE UNIQUE INDEX CONCURRENTLY ON %s (%s);", l.Events(), strings.Join(quoted, ", "))}
}
