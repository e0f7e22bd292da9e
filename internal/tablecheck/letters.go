package tablecheck

// What the statements of a store can do with a dead-letter table.

import (
	"fmt"
	"slices"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// letter compares a dead-letter table, of the events of another inspection. Relays write its rows.
func (in *inspection) letter(events *inspection) {
	in.place()
	copied := map[layouts.Field]layouts.Column{
		layouts.FieldType: in.layout.Columns.Type, layouts.FieldAggregateType: in.layout.Columns.AggregateType, layouts.FieldAggregateID: in.layout.Columns.AggregateID,
		layouts.FieldPayload: in.layout.Columns.Payload, layouts.FieldCreatedAt: in.layout.Columns.CreatedAt, layouts.FieldAttempts: in.layout.Columns.Attempts,
	}
	var written []string
	for _, c := range in.columns {
		is := in.column(c.Name)
		if is == nil {
			in.report(c.Name, false, "has no column %q for %s", c.Name, c.Field)
			continue
		}
		from, isCopy := copied[c.Field]
		if c.Field != "retriedAt" && (!isCopy || !from.IsZero()) {
			written = append(written, c.Name)
		}
		needed := unusableLetter(in.layout, c, is)
		if isCopy {
			needed = notCopied(is, events.column(from.Name))
		}
		if needed == "" && is.generated {
			needed = "it is generated, and has to be written"
		}
		if needed != "" {
			in.report(c.Name, false, "has column %q for %s as %s: %s", c.Name, c.Field, is.shown, needed)
		} else if c.Field == "reason" && len(is.labels) > 0 {
			in.lacks(c, is, reasons, false)
		}
	}
	if name := "retried_at"; in.layout.DeadLetter.Columns.RetriedAt.IsZero() && in.column(name) != nil {
		in.report(name, false, "has column %q, and the layout names none for retriedAt: events that were retried would stay dead; name it in the layout", name)
	}
	for i := range in.found {
		is := &in.found[i]
		if is.notNull && !is.hasDefault && !is.generated && !slices.Contains(written, is.name) {
			in.report(is.name, false, "has column %q, which takes no NULL, has no default and is not written: a dead event would have no letter; give it a default", is.name)
		}
	}
}

// unusableLetter says what is needed of a column that is a letter's own.
func unusableLetter(l *tablesql.Layout, c layouts.NamedColumn, is *described) string {
	switch c.Field {
	case "id":
		return unless(is.base == "uuid" || is.isString() && (is.length == 0 || is.length >= workerIDLength), "uuid is needed")
	case "eventId":
		return unless(is.base == "uuid", "uuid is needed")
	case "reason":
		return unusableReason(l, c, is)
	case "retriedAt":
		if is.notNull {
			return "it takes no NULL, and a letter that nobody retried has none"
		}
		return unless(is.isTime(), "timestamptz is needed")
	case "failedAt":
		return unless(is.isTime(), "timestamptz is needed")
	case layouts.FieldLastError:
		if needed := unless(is.isString(), "text is needed"); needed != "" {
			return needed
		}
		return tooShort(l, c, is)
	}
	return ""
}

// reasons are what a relay gives.
var reasons = []string{
	string(outbox.ReasonMaxAttempts), string(outbox.ReasonUnknownType), string(outbox.ReasonInvalidPayload), string(outbox.ReasonInvalidAggregate),
	string(outbox.ReasonInvalidRow), string(outbox.ReasonTooLarge), string(outbox.ReasonRejected), string(outbox.ReasonTerminal),
}

func unusableReason(l *tablesql.Layout, c layouts.NamedColumn, is *described) string {
	if c.Enum != "" && !is.isEnum && (!is.enumThere || !is.isString()) {
		return "enum " + l.Qualified(c.Enum) + " is needed"
	}
	if c.Enum == "" && !is.isString() {
		return unless(len(is.labels) == 0, `name the type as "enum" in the layout`) + unless(len(is.labels) > 0, "text is needed")
	}
	for _, reason := range reasons {
		if is.length > 0 && len(reason) > is.length {
			return fmt.Sprintf("reason %q has %d characters", reason, len(reason))
		}
	}
	return ""
}

// notCopied says what is needed of a column that takes a value of another.
func notCopied(is, from *described) string {
	switch {
	case from == nil, is.oid == from.oid, from.oid == 0 && is.base == from.base, is.isString() && is.length == 0, is.isString() && from.isString() && from.length > 0 && from.length <= is.length,
		is.isTime() && from.isTime(), is.isJSON() && from.isJSON(), is.isInteger() && from.isInteger():
		return ""
	}
	return from.shown + " is needed, as in the outbox table"
}
