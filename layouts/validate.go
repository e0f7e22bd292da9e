package layouts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlname"
)

// LayoutError says which part of a layout was refused, and why. It matches
// outbox.ErrInvalidLayout.
type LayoutError struct {
	// Layout is the layout's name.
	Layout string
	// Field is the path of the part, such as "columns.lockedBy".
	Field string
	// Problem says what is wrong with it.
	Problem string
}

// Error returns one line: the layout, the field and the problem.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("outbox: layout %q: %s %s", e.Layout, e.Field, e.Problem)
}

// Unwrap makes errors.Is(err, outbox.ErrInvalidLayout) true.
func (e *LayoutError) Unwrap() error { return outbox.ErrInvalidLayout }

// Validate returns the layout's first problem as a *LayoutError, or nil.
func (l Layout) Validate() error {
	for _, check := range []func() (field, problem string){
		l.checkNames, l.checkHabits, l.checkColumns, l.checkNeeded, l.checkStates, l.checkDedupe, l.checkDeadLetter,
	} {
		if field, problem := check(); problem != "" {
			return &LayoutError{Layout: l.Name, Field: field, Problem: problem}
		}
	}
	return nil
}

func (l *Layout) checkNames() (field, problem string) {
	if problem := sqlname.Problem(l.Name); problem != "" {
		return "name", problem
	}
	if problem := sqlname.Problem(l.Schema); l.Schema != "" && problem != "" {
		return "schema", problem
	}
	return "table", sqlname.Problem(l.Table)
}

func (l *Layout) checkHabits() (field, problem string) {
	for _, habit := range []struct{ field, problem string }{
		{"hold", oneOf(l.Hold, HoldLease, HoldDefer, HoldRowLock)},
		{"done", oneOf(l.Done, DoneStatus, DoneTimestamp)},
		{"count", oneOf(l.Count, CountOnClaim, CountOnFailure)},
		{"terminal", oneOf(l.Terminal, TerminalStatus, TerminalDeadLetter)},
	} {
		if habit.problem != "" {
			return habit.field, habit.problem
		}
	}
	if l.Count == CountOnClaim && l.Hold == HoldRowLock {
		return "count", `cannot be "claim" with hold "rowlock": the claim writes nothing there; use "failure"`
	}
	if l.Terminal == TerminalStatus && l.Done != DoneStatus {
		return "terminal", `cannot be "status" with done "timestamp": there is no status; use "deadletter"`
	}
	if l.MaxAttempts < 1 {
		return "maxAttempts", fmt.Sprintf("is %d; it must be at least 1", l.MaxAttempts)
	}
	return "", ""
}

func oneOf[T ~string](value T, choices ...T) string {
	if slices.Contains(choices, value) {
		return ""
	}
	names := make([]string, len(choices))
	for i, choice := range choices {
		names[i] = string(choice)
	}
	return fmt.Sprintf("is %q; it must be one of %s", value, strings.Join(names, ", "))
}

// checkColumns checks each column by itself, and that no two fields share one.
func (l *Layout) checkColumns() (field, problem string) {
	return checkColumns("columns.", l.Columns.All())
}

func checkColumns(path string, columns []NamedColumn) (field, problem string) {
	seen := make(map[string]Field)
	for _, c := range columns {
		if c.IsZero() {
			continue
		}
		at := path + string(c.Field)
		if problem := sqlname.Problem(c.Name); problem != "" {
			return at, problem
		}
		if other, doubled := seen[c.Name]; doubled {
			return at, fmt.Sprintf("is column %q, which %s%s is already", c.Name, path, other)
		}
		seen[c.Name] = c.Field
		if problem := checkType(c); problem != "" {
			return at, problem
		}
	}
	return "", ""
}

func checkType(c NamedColumn) string {
	if c.Enum != "" {
		if c.Type != "" {
			return "has both a type and an enum; an enum is a type of its own"
		}
		if problem := sqlname.Problem(c.Enum); problem != "" {
			return "has an enum whose name " + problem
		}
	}
	if c.MaxLength < 0 {
		return fmt.Sprintf("has maxLength %d; it cannot be negative", c.MaxLength)
	}
	if c.Type == "" {
		return ""
	}
	allowed := []string{"text"}
	switch c.Field {
	case FieldPayload:
		allowed = []string{"jsonb", "json", "text", "bytea"}
	case FieldHeaders:
		allowed = []string{"jsonb", "json", "text"}
	case FieldAggregateID, FieldDedupeKey, FieldKey:
		allowed = []string{"text", "uuid"}
	case FieldLockedBy:
		allowed = []string{"uuid", "text"}
	case FieldID, FieldTenantID:
		allowed = []string{"uuid"}
	}
	return oneOf(c.Type, allowed...)
}

// checkNeeded checks for the columns that Hold, Done, Count and Terminal need.
func (l *Layout) checkNeeded() (field, problem string) {
	needs := []struct {
		field  Field
		column Column
		needed bool
		why    string
	}{
		{FieldID, l.Columns.ID, true, "every table needs it"},
		{FieldPayload, l.Columns.Payload, true, "every table needs it"},
		{FieldAttempts, l.Columns.Attempts, true, "every table needs it"},
		{FieldCreatedAt, l.Columns.CreatedAt, true, "every table needs it"},
		{FieldLockedBy, l.Columns.LockedBy, l.Hold == HoldLease, `hold "lease" needs it`},
		{FieldLockedUntil, l.Columns.LockedUntil, l.Hold == HoldLease, `hold "lease" needs it`},
		{FieldNextAttemptAt, l.Columns.NextAttemptAt, l.Hold == HoldDefer, `hold "defer" needs it`},
		{FieldStatus, l.Columns.Status, l.Done == DoneStatus, `done "status" needs it`},
		{FieldDeliveredAt, l.Columns.DeliveredAt, l.Done == DoneTimestamp, `done "timestamp" needs it`},
	}
	for _, need := range needs {
		if need.needed && need.column.IsZero() {
			return "columns." + string(need.field), "is missing; " + need.why
		}
	}
	if l.Done != DoneStatus && !l.Columns.Status.IsZero() {
		return "columns.status", `is set, but done is not "status"`
	}
	if l.Hold != HoldLease && (!l.Columns.LockedBy.IsZero() || !l.Columns.LockedUntil.IsZero()) {
		return "columns.lockedBy", `or columns.lockedUntil is set, but hold is not "lease"`
	}
	return "", ""
}

func (l *Layout) checkStates() (field, problem string) {
	switch {
	case l.Done != DoneStatus && l.States != nil:
		return "states", `is set, but done is not "status"`
	case l.Done != DoneStatus:
		return "", ""
	case l.States == nil:
		return "states", `is missing; done "status" needs it`
	}
	states := []struct {
		name, value string
		needed      bool
	}{
		{"pending", l.States.Pending, true},
		{"processing", l.States.Processing, l.Hold == HoldLease},
		{"delivered", l.States.Delivered, true},
		{"dead", l.States.Dead, l.Terminal == TerminalStatus},
	}
	seen := make(map[string]string)
	for _, state := range states {
		at := "states." + state.name
		switch {
		case state.needed && state.value == "":
			return at, "is missing"
		case !state.needed && state.value != "":
			return at, "is set, but no habit of the layout uses it"
		case state.value == "":
			continue
		}
		if problem := sqlname.Problem(state.value); problem != "" {
			return at, problem
		}
		if other, doubled := seen[state.value]; doubled {
			return at, fmt.Sprintf("is %q, which states.%s is already", state.value, other)
		}
		seen[state.value] = state.name
	}
	return "", ""
}

func (l *Layout) checkDedupe() (field, problem string) {
	if len(l.Dedupe) > 0 && l.Columns.DedupeKey.IsZero() {
		return "dedupe", "is set, but columns.dedupeKey is missing"
	}
	for i, scope := range l.Dedupe {
		at := fmt.Sprintf("dedupe[%d]", i)
		if problem := oneOf(scope, FieldNamespace, FieldTopic, FieldType, FieldTenantID, FieldAggregateType); problem != "" {
			return at, problem
		}
		if l.Column(scope).IsZero() {
			return at, fmt.Sprintf("is %s, but columns.%s is missing", scope, scope)
		}
		if slices.Contains(l.Dedupe[:i], scope) {
			return at, fmt.Sprintf("names %s twice", scope)
		}
	}
	return "", ""
}

func (l *Layout) checkDeadLetter() (field, problem string) {
	switch {
	case l.Terminal != TerminalDeadLetter && l.DeadLetter != nil:
		return "deadLetter", `is set, but terminal is not "deadletter"`
	case l.Terminal != TerminalDeadLetter:
		return "", ""
	case l.DeadLetter == nil:
		return "deadLetter", `is missing; terminal "deadletter" needs it`
	}
	d := l.DeadLetter
	if problem := sqlname.Problem(d.Table); problem != "" {
		return "deadLetter.table", problem
	}
	if d.Table == l.Table {
		return "deadLetter.table", "is the outbox table itself"
	}
	columns := d.Columns.All()
	if field, problem := checkColumns("deadLetter.columns.", columns); problem != "" {
		return field, problem
	}
	for _, c := range columns {
		switch c.Field {
		case "id", "eventId", FieldPayload, "reason", "failedAt":
			if c.IsZero() {
				return "deadLetter.columns." + string(c.Field), "is missing"
			}
		}
	}
	return "", ""
}
