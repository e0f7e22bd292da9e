package tablecheck

// What the statements of a store can do with a column, by its type.

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// Categories of types in pg_type.
const (
	stringCategory  = "S"
	numericCategory = "N"
	booleanCategory = "B"
)

func (d *described) isString() bool { return d.category == stringCategory }
func (d *described) isJSON() bool   { return d.base == "json" || d.base == "jsonb" }
func (d *described) isTime() bool   { return d.base == "timestamptz" || d.base == "timestamp" }
func (d *described) isInteger() bool {
	return d.base == "int2" || d.base == "int4" || d.base == "int8"
}

// event compares the outbox table itself.
func (in *inspection) event() {
	in.place()
	for _, c := range in.columns {
		is := in.column(c.Name)
		if is == nil {
			in.report(c.Name, false, "has no column %q for %s", c.Name, c.Field)
			continue
		}
		needed, onlyEmit := unusable(in.layout, c, is)
		if needed == "" {
			needed, onlyEmit = tooNarrow(in.layout, c, is)
		}
		if needed != "" {
			in.report(c.Name, onlyEmit, "has column %q for %s as %s: %s", c.Name, c.Field, is.shown, needed)
		} else if is.isEnum {
			in.lacks(c, is, c.Values, true)
		}
	}
	for i := range in.found {
		is := &in.found[i]
		mapped := slices.ContainsFunc(in.columns, func(c layouts.NamedColumn) bool { return c.Name == is.name })
		if !mapped && is.notNull && !is.hasDefault && !is.generated {
			in.report(is.name, true, "has column %q, which takes no NULL, has no default and is not in the layout: emit cannot write a row; give it a default", is.name)
		}
	}
}

// place refuses what is not one plain table, whole and kept. Claims and purges find rows by ctid, which names a
// row of another partition just as well: they would take, and delete, events that nobody delivered.
func (in *inspection) place() {
	switch {
	case in.kind == "p" || in.kind == "r" && in.children:
		in.report("", false, "has partitions or children, and has to be a plain table: a claim and a purge name rows by their place in one table")
	case in.kind != "r":
		in.report("", false, "is no table but a view or the like: rows cannot be locked in it")
	}
	if in.unlogged {
		in.report("", false, "is UNLOGGED: a crash of the server empties it, and committed events are lost; run ALTER TABLE … SET LOGGED")
	}
	if in.hidden {
		in.report("", false, "has row-level security, which hides events from this role; run ALTER TABLE … DISABLE ROW LEVEL SECURITY, or give the role BYPASSRLS")
	}
}

// unusable says what is needed where a column's type cannot be used, and whether only emit needs it.
// The parts are those of the compiled statements: see claim, settle, scanned and insertColumns.
func unusable(l *tablesql.Layout, c layouts.NamedColumn, is *described) (needed string, onlyEmit bool) {
	switch c.Field {
	case layouts.FieldID, layouts.FieldTenantID:
		// It is compared with a UUID, and read as one.
		return unless(is.base == "uuid", "uuid is needed"), false
	case layouts.FieldLockedBy:
		if c.SQLType(c.Field) == "uuid" {
			return unless(is.base == "uuid", `uuid is needed; for text, say "type": "text" in the layout`), false
		}
		return unless(is.isString(), "text is needed"), false
	case layouts.FieldAttempts, layouts.FieldMaxAttempts:
		return unless(is.isInteger(), "integer is needed"), false
	case layouts.FieldNextAttemptAt, layouts.FieldLockedUntil, layouts.FieldCreatedAt, layouts.FieldUpdatedAt, layouts.FieldDeliveredAt:
		return unless(is.isTime(), "timestamptz is needed"), false
	case layouts.FieldStatus:
		return unusableStatus(l, c, is), false
	case layouts.FieldLastError:
		return unless(is.isString(), "text is needed"), false
	case layouts.FieldPayload:
		return unusablePayload(c, is)
	case layouts.FieldHeaders:
		return unusableHeaders(c, is)
	default:
		// A text of the event is read from any type; it is emit that has to write it.
		return unusableText(l, c, is), true
	}
}

func unless(ok bool, needed string) string {
	if ok {
		return ""
	}
	return needed
}

// unusablePayload: JSON is read as text, from a text column as well. Bytes would be read as their
// hexadecimal form, and delivered so; emit would write bytes in that form to a text column.
func unusablePayload(c layouts.NamedColumn, is *described) (needed string, onlyEmit bool) {
	switch declared := c.SQLType(layouts.FieldPayload); {
	case declared == "bytea":
		return unless(is.base == "bytea", "bytea is needed"), is.isString()
	case declared == "text" && is.isJSON():
		return fmt.Sprintf("emit cannot write text there; say \"type\": %q in the layout", is.base), true
	case declared == "text":
		return unless(is.isString(), "text is needed"), false
	case is.base == "bytea":
		return `jsonb is needed; for bytes, say "type": "bytea" in the layout`, false
	default:
		return unless(is.isJSON() || is.isString(), declared+" is needed"), false
	}
}

func unusableHeaders(c layouts.NamedColumn, is *described) (needed string, onlyEmit bool) {
	switch {
	case is.isString():
		return "", false
	case is.isJSON():
		return unless(c.SQLType(layouts.FieldHeaders) != "text", fmt.Sprintf("emit cannot write text there; say \"type\": %q in the layout", is.base)), true
	}
	return "jsonb is needed", false
}

// unusableText is about what emit writes: a text, a UUID or a value of an enum.
func unusableText(l *tablesql.Layout, c layouts.NamedColumn, is *described) string {
	// To find a row that is there already, emit compares without a cast.
	compared := c.Field == layouts.FieldDedupeKey || slices.Contains(l.Dedupe, c.Field)
	switch {
	case c.Enum != "":
		return unless(is.isEnum || is.enumThere && is.isString() && !compared, "enum "+l.Qualified(c.Enum)+" is needed")
	case c.SQLType(c.Field) == "uuid":
		return unless(is.base == "uuid" || is.isString() && !compared, "uuid is needed")
	case is.isString():
		return ""
	case len(is.labels) > 0:
		return `emit cannot write text there; name the type as "enum" in the layout`
	case is.base == "uuid" && slices.Contains([]layouts.Field{layouts.FieldAggregateID, layouts.FieldDedupeKey, layouts.FieldKey}, c.Field):
		return `emit cannot write text there; say "type": "uuid" in the layout`
	}
	return "text is needed"
}

// unusableStatus: the states are written as literals, which take the column's type, but for a claim
// that ends rows, too: its choice between two states is a text.
func unusableStatus(l *tablesql.Layout, c layouts.NamedColumn, is *described) string {
	for _, state := range l.States.All() {
		switch {
		case is.isString():
		case len(is.labels) > 0:
			if !slices.Contains(is.labels, state) {
				return fmt.Sprintf("it has no value %q, which states names", state)
			}
		case is.category == numericCategory:
			if _, err := strconv.ParseInt(state, 10, 64); err != nil {
				return fmt.Sprintf("state %q is no number", state)
			}
		case is.category == booleanCategory:
			if state != "true" && state != "false" {
				return fmt.Sprintf("state %q is neither true nor false", state)
			}
		default:
			return "text or an enum is needed"
		}
	}
	switch {
	case is.isString() || !l.ClaimEnds():
		return ""
	case len(is.labels) == 0:
		return "text or an enum is needed"
	case c.Enum == "":
		return `name the type as "enum" in the layout`
	}
	return unless(is.isEnum, "enum "+l.Qualified(c.Enum)+" is needed")
}

// tooNarrow says what is needed where a column of a good type does not take what is written there.
func tooNarrow(l *tablesql.Layout, c layouts.NamedColumn, is *described) (needed string, onlyEmit bool) {
	settled := slices.Contains([]layouts.Field{
		layouts.FieldStatus, layouts.FieldAttempts, layouts.FieldNextAttemptAt, layouts.FieldLockedBy, layouts.FieldLockedUntil, layouts.FieldLastError, layouts.FieldUpdatedAt, layouts.FieldDeliveredAt,
	}, c.Field)
	if is.generated {
		return "it is generated, and has to be written", !settled
	}
	switch c.Field {
	case layouts.FieldLockedBy, layouts.FieldLockedUntil:
		if is.notNull {
			return "it takes no NULL, and a row that nobody holds has none", false
		}
	case layouts.FieldDeliveredAt:
		if is.notNull {
			// With a status it is only for people, and set when the row is delivered.
			return "it takes no NULL, and a row that waits has none", l.Done == layouts.DoneStatus
		}
	case layouts.FieldNextAttemptAt:
		if is.notNull && !c.NotNull {
			return `it takes no NULL; say "notNull": true in the layout`, false
		}
	case layouts.FieldLastError:
		if is.notNull && !c.NotNull {
			return `it takes no NULL; say "notNull": true in the layout`, true
		}
	}
	return tooShort(l, c, is), false
}

// workerIDLength is that of a UUID in words.
const workerIDLength = 36

// tooShort is about the texts that relays write.
func tooShort(l *tablesql.Layout, c layouts.NamedColumn, is *described) string {
	if is.length == 0 {
		return ""
	}
	switch c.Field {
	case layouts.FieldStatus:
		for _, state := range l.States.All() {
			if len([]rune(state)) > is.length {
				return fmt.Sprintf("state %q has %d characters", state, len([]rune(state)))
			}
		}
	case layouts.FieldLockedBy:
		return unless(is.length >= workerIDLength, fmt.Sprintf("a worker's id has %d characters", workerIDLength))
	case layouts.FieldLastError:
		length, _ := tablesql.ErrorLength(c.Column)
		return unless(is.length >= length, fmt.Sprintf("errors have up to %d characters; say \"maxLength\": %d in the layout", length, is.length))
	}
	return ""
}
