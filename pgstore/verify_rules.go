package pgstore

// What the statements of a store can do with a column, by its type.

import (
	"fmt"
	"slices"
	"strconv"
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
			in.report(c.Name, false, "has no column %q for %s", c.Name, c.field)
			continue
		}
		needed, onlyEmit := in.layout.unusable(c, is)
		if needed == "" {
			needed, onlyEmit = in.layout.tooNarrow(c, is)
		}
		if needed != "" {
			in.report(c.Name, onlyEmit, "has column %q for %s as %s: %s", c.Name, c.field, is.shown, needed)
		} else if is.isEnum {
			in.lacks(c, is, c.Values, true)
		}
	}
	for i := range in.found {
		is := &in.found[i]
		mapped := slices.ContainsFunc(in.columns, func(c named) bool { return c.Name == is.name })
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
func (l *Layout) unusable(c named, is *described) (needed string, onlyEmit bool) {
	switch c.field {
	case FieldID, FieldTenantID:
		// It is compared with a UUID, and read as one.
		return unless(is.base == "uuid", "uuid is needed"), false
	case FieldLockedBy:
		if c.sqlType(c.field) == "uuid" {
			return unless(is.base == "uuid", `uuid is needed; for text, say "type": "text" in the layout`), false
		}
		return unless(is.isString(), "text is needed"), false
	case FieldAttempts, FieldMaxAttempts:
		return unless(is.isInteger(), "integer is needed"), false
	case FieldNextAttemptAt, FieldLockedUntil, FieldCreatedAt, FieldUpdatedAt, FieldDeliveredAt:
		return unless(is.isTime(), "timestamptz is needed"), false
	case FieldStatus:
		return l.unusableStatus(c, is), false
	case FieldLastError:
		return unless(is.isString(), "text is needed"), false
	case FieldPayload:
		return unusablePayload(c, is)
	case FieldHeaders:
		return unusableHeaders(c, is)
	default:
		// A text of the event is read from any type; it is emit that has to write it.
		return l.unusableText(c, is), true
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
func unusablePayload(c named, is *described) (needed string, onlyEmit bool) {
	switch declared := c.sqlType(FieldPayload); {
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

func unusableHeaders(c named, is *described) (needed string, onlyEmit bool) {
	switch {
	case is.isString():
		return "", false
	case is.isJSON():
		return unless(c.sqlType(FieldHeaders) != "text", fmt.Sprintf("emit cannot write text there; say \"type\": %q in the layout", is.base)), true
	}
	return "jsonb is needed", false
}

// unusableText is about what emit writes: a text, a UUID or a value of an enum.
func (l *Layout) unusableText(c named, is *described) string {
	// To find a row that is there already, emit compares without a cast.
	compared := c.field == FieldDedupeKey || slices.Contains(l.Dedupe, c.field)
	switch {
	case c.Enum != "":
		return unless(is.isEnum || is.enumThere && is.isString() && !compared, "enum "+l.qualified(c.Enum)+" is needed")
	case c.sqlType(c.field) == "uuid":
		return unless(is.base == "uuid" || is.isString() && !compared, "uuid is needed")
	case is.isString():
		return ""
	case len(is.labels) > 0:
		return `emit cannot write text there; name the type as "enum" in the layout`
	case is.base == "uuid" && slices.Contains([]Field{FieldAggregateID, FieldDedupeKey, FieldKey}, c.field):
		return `emit cannot write text there; say "type": "uuid" in the layout`
	}
	return "text is needed"
}

// unusableStatus: the states are written as literals, which take the column's type, but for a claim
// that ends rows, too: its choice between two states is a text.
func (l *Layout) unusableStatus(c named, is *described) string {
	for _, state := range l.States.all() {
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
	case is.isString() || !l.claimEnds():
		return ""
	case len(is.labels) == 0:
		return "text or an enum is needed"
	case c.Enum == "":
		return `name the type as "enum" in the layout`
	}
	return unless(is.isEnum, "enum "+l.qualified(c.Enum)+" is needed")
}

// all are the states that are used.
func (s *States) all() []string {
	return slices.DeleteFunc([]string{s.Pending, s.Processing, s.Delivered, s.Dead}, func(state string) bool { return state == "" })
}

// tooNarrow says what is needed where a column of a good type does not take what is written there.
func (l *Layout) tooNarrow(c named, is *described) (needed string, onlyEmit bool) {
	settled := slices.Contains([]Field{
		FieldStatus, FieldAttempts, FieldNextAttemptAt, FieldLockedBy, FieldLockedUntil, FieldLastError, FieldUpdatedAt, FieldDeliveredAt,
	}, c.field)
	if is.generated {
		return "it is generated, and has to be written", !settled
	}
	switch c.field {
	case FieldLockedBy, FieldLockedUntil:
		if is.notNull {
			return "it takes no NULL, and a row that nobody holds has none", false
		}
	case FieldDeliveredAt:
		if is.notNull {
			// With a status it is only for people, and set when the row is delivered.
			return "it takes no NULL, and a row that waits has none", l.Done == DoneStatus
		}
	case FieldNextAttemptAt:
		if is.notNull && !c.NotNull {
			return `it takes no NULL; say "notNull": true in the layout`, false
		}
	case FieldLastError:
		if is.notNull && !c.NotNull {
			return `it takes no NULL; say "notNull": true in the layout`, true
		}
	}
	return l.tooShort(c, is), false
}

// workerIDLength is that of a UUID in words.
const workerIDLength = 36

// tooShort is about the texts that relays write.
func (l *Layout) tooShort(c named, is *described) string {
	if is.length == 0 {
		return ""
	}
	switch c.field {
	case FieldStatus:
		for _, state := range l.States.all() {
			if len([]rune(state)) > is.length {
				return fmt.Sprintf("state %q has %d characters", state, len([]rune(state)))
			}
		}
	case FieldLockedBy:
		return unless(is.length >= workerIDLength, fmt.Sprintf("a worker's id has %d characters", workerIDLength))
	case FieldLastError:
		return unless(is.length >= c.errorLength(),
			fmt.Sprintf("errors have up to %d characters; say \"maxLength\": %d in the layout", c.errorLength(), is.length))
	}
	return ""
}
