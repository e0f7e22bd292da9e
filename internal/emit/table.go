package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/layouts"
)

// tablePlan compiles a layout into the statements that write events.
func tablePlan(l *layouts.Layout) (*Plan, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	ins := newInsert(l)
	// ON CONFLICT has no target: it covers the id as well as the dedupe key, and what else it
	// may have been is found out afterwards.
	plan := &Plan{
		Target:     "layout " + l.Name,
		Layout:     l.Name,
		Fields:     emitFields(l),
		Insert:     ins.one(l) + "\nON CONFLICT DO NOTHING",
		InsertMany: ins.many(l) + "\nON CONFLICT DO NOTHING\nRETURNING " + sqlname.Quote(l.Columns.ID.Name),
		InsertNew:  ins.one(l), InsertManyNew: ins.many(l),
		DedupeFromID: l.Columns.DedupeKey.NotNull,
		SortByDedupe: true,
	}
	for _, p := range ins.params {
		plan.Columns = append(plan.Columns, p.column)
	}
	plan.NewColumns = plan.Columns
	if !l.Columns.MaxAttempts.IsZero() && l.Columns.MaxAttempts.NotNull {
		plan.DefaultMaxAttempts = l.MaxAttempts
	}
	plan.Find, plan.FindColumns = ins.find(l)
	return plan, nil
}

// emitFields are the rules an event has to keep to fit the table.
func emitFields(l *layouts.Layout) Fields {
	rule := func(c layouts.Column) Rule {
		return Rule{
			Stored: !c.IsZero(), Required: c.NotNull, UUID: c.Type == "uuid",
			MaxLength: c.MaxLength, Values: c.Values,
		}
	}
	c := &l.Columns
	fields := Fields{
		Namespace:     rule(c.Namespace),
		Topic:         rule(c.Topic),
		Type:          rule(c.Type),
		AggregateType: rule(c.AggregateType),
		AggregateID:   rule(c.AggregateID),
		TenantID:      rule(c.TenantID),
		DedupeKey:     rule(c.DedupeKey),
		Key:           rule(c.Key),
		Headers:       rule(c.Headers),
		ContentType:   rule(c.ContentType),
		MaxAttempts:   rule(c.MaxAttempts),
		// The first attempt of a row is at its due time.
		NotBefore: rule(c.NextAttemptAt),
		Payload: map[string]PayloadFormat{
			"jsonb": PayloadJSONB, "json": PayloadJSON, "text": PayloadText, "bytea": PayloadBytes,
		}[c.Payload.SQLType(layouts.FieldPayload)],
	}
	// A type, and a topic, say what an event is and where it goes: a table that has
	// the column never takes an event without one, NOT NULL or not.
	fields.Type.Required = fields.Type.Stored
	fields.Topic.Required = fields.Topic.Stored
	fields.DedupeKey.Required = false
	return fields
}

// insertColumns is the list of columns an INSERT writes: those that come from the
// event, and those that every new row starts with.
type insertColumns struct {
	names  []string
	values []func(param func(i int) string) string
	params []insertParam
}

type insertParam struct {
	field  layouts.Field
	cast   string
	column Column
}

// array is the type of the column of many events, where it is an array.
func (p *insertParam) array() string {
	switch {
	case p.column.UUID != nil:
		return "uuid[]"
	case p.column.Bytes != nil:
		return "bytea[]"
	default:
		return "text[]"
	}
}

// value is the value of a row of many, where parameter n is the column.
func (p *insertParam) value(n int) string {
	own := fmt.Sprintf("new.p%d::%s", n, p.cast)
	if !p.column.Shared {
		return own
	}
	// A query of its own is run once; a cast of the first element would be for every row.
	return fmt.Sprintf("coalesce(%s, (SELECT ($%d::text[])[1]::%s))", own, n, p.cast)
}

// rows are the values of the column of many events, which is parameter n.
func (p *insertParam) rows(n int) string {
	if p.column.JSON != nil {
		return fmt.Sprintf("unnest(string_to_array($%d::text, chr(%d)))", n, JSONSeparator)
	}
	return fmt.Sprintf("unnest($%d::%s)", n, p.array())
}

// insertColumns writes every column of the layout. None is left to a default of the
// database: tables made by Django have none.
func newInsert(l *layouts.Layout) *insertColumns {
	ins := &insertColumns{}
	c := &l.Columns
	ins.param(l, layouts.FieldID, c.ID, Column{UUID: ID})
	ins.text(l, layouts.FieldNamespace, c.Namespace, func(e *outbox.Event) *string { return &e.Namespace })
	ins.text(l, layouts.FieldTopic, c.Topic, func(e *outbox.Event) *string { return &e.Topic })
	ins.text(l, layouts.FieldType, c.Type, func(e *outbox.Event) *string { return &e.Type })
	ins.text(l, layouts.FieldAggregateType, c.AggregateType, func(e *outbox.Event) *string { return &e.AggregateType })
	ins.text(l, layouts.FieldAggregateID, c.AggregateID, func(e *outbox.Event) *string { return &e.AggregateID })
	ins.param(l, layouts.FieldTenantID, c.TenantID, Column{UUID: TenantID})
	ins.text(l, layouts.FieldDedupeKey, c.DedupeKey, func(e *outbox.Event) *string { return &e.DedupeKey })
	ins.text(l, layouts.FieldKey, c.Key, func(e *outbox.Event) *string { return &e.Key })
	payload := func(e *outbox.Event) []byte { return e.Payload }
	switch c.Payload.SQLType(layouts.FieldPayload) {
	case "bytea":
		ins.param(l, layouts.FieldPayload, c.Payload, Column{Bytes: payload})
	case "text":
		ins.param(l, layouts.FieldPayload, c.Payload, Column{Text: Payload})
	default:
		ins.param(l, layouts.FieldPayload, c.Payload, Column{JSON: payload})
	}
	ins.param(l, layouts.FieldHeaders, c.Headers, Column{Text: Headers})
	ins.text(l, layouts.FieldContentType, c.ContentType, func(e *outbox.Event) *string { return &e.ContentType })
	ins.param(l, layouts.FieldMaxAttempts, c.MaxAttempts, Column{Text: MaxAttempts})
	if !c.NextAttemptAt.IsZero() {
		i := ins.addParam(layouts.FieldNextAttemptAt, "timestamptz", Column{Text: NotBefore})
		ins.add(c.NextAttemptAt, func(param func(int) string) string { return "coalesce(" + param(i) + ", now())" })
	}

	if l.States != nil {
		ins.constant(c.Status, sqlname.Literal(l.States.Pending))
	}
	ins.constant(c.Attempts, "0")
	ins.constant(c.LockedBy, "NULL")
	ins.constant(c.LockedUntil, "NULL")
	if c.LastError.NotNull {
		ins.constant(c.LastError, "''")
	} else {
		ins.constant(c.LastError, "NULL")
	}
	ins.constant(c.CreatedAt, "now()")
	ins.constant(c.UpdatedAt, "now()")
	ins.constant(c.DeliveredAt, "NULL")
	return ins
}

func (ins *insertColumns) add(c layouts.Column, value func(param func(int) string) string) {
	ins.names = append(ins.names, sqlname.Quote(c.Name))
	ins.values = append(ins.values, value)
}

func (ins *insertColumns) constant(c layouts.Column, sql string) {
	if !c.IsZero() {
		ins.add(c, func(func(int) string) string { return sql })
	}
}

func (ins *insertColumns) param(l *layouts.Layout, field layouts.Field, c layouts.Column, column Column) {
	if c.IsZero() {
		return
	}
	column.Shared = column.Text != nil && c.NotNull
	i := ins.addParam(field, l.SQLType(c, field), column)
	ins.add(c, func(param func(int) string) string { return param(i) })
}

// text is a parameter from a text of the event.
func (ins *insertColumns) text(l *layouts.Layout, field layouts.Field, c layouts.Column, value func(*outbox.Event) *string) {
	if c.SQLType(field) == "uuid" {
		ins.param(l, field, c, Column{UUID: UUID(value)})
	} else {
		ins.param(l, field, c, Column{Text: String(value)})
	}
}

func (ins *insertColumns) addParam(field layouts.Field, cast string, column Column) int {
	ins.params = append(ins.params, insertParam{field: field, cast: cast, column: column})
	return len(ins.params) - 1
}

// expressions are the values of one row, given how a parameter is written.
func (ins *insertColumns) expressions(param func(i int) string) string {
	values := make([]string, len(ins.values))
	for i, value := range ins.values {
		values[i] = value(param)
	}
	return strings.Join(values, ", ")
}

// one writes a single row.
func (ins *insertColumns) one(l *layouts.Layout) string {
	return fmt.Sprintf("INSERT INTO %s (%s)\nVALUES (%s)",
		sqlname.Qualified(l.Schema, l.Table), strings.Join(ins.names, ", "),
		ins.expressions(func(i int) string { return fmt.Sprintf("$%d::%s", i+1, ins.params[i].cast) }))
}

// many writes rows whose columns are the parameters, so that the statement is the same for
// any number of rows and is prepared once.
func (ins *insertColumns) many(l *layouts.Layout) string {
	// unnest in the list, not after FROM: there each array would be copied to a table of its
	// own first.
	columns := make([]string, len(ins.params))
	for i := range ins.params {
		columns[i] = fmt.Sprintf("%s AS p%d", ins.params[i].rows(i+1), i+1)
	}
	return fmt.Sprintf("INSERT INTO %s (%s)\nSELECT %s\nFROM (SELECT %s) AS new",
		sqlname.Qualified(l.Schema, l.Table), strings.Join(ins.names, ", "),
		ins.expressions(func(i int) string { return ins.params[i].value(i + 1) }),
		strings.Join(columns, ", "))
}

// unnest is the argument list and the column list of an unnest over parameters.
func (ins *insertColumns) unnest(params []int) (arrays, names string) {
	var a, n []string
	for place, i := range params {
		a = append(a, fmt.Sprintf("$%d::%s", place+1, ins.params[i].array()))
		n = append(n, fmt.Sprintf("p%d", i+1))
	}
	return strings.Join(a, ", "), strings.Join(n, ", ")
}

// find looks up rows by id, or else by dedupe key within its scope.
func (ins *insertColumns) find(l *layouts.Layout) (sql string, columns []int) {
	scope := []layouts.Field{layouts.FieldID}
	if !l.Columns.DedupeKey.IsZero() {
		scope = append(append(scope, l.Dedupe...), layouts.FieldDedupeKey)
	}
	equal := func(field layouts.Field) string {
		i := slices.IndexFunc(ins.params, func(p insertParam) bool { return p.field == field })
		columns = append(columns, i)
		return fmt.Sprintf("t.%s = old.p%d::%s", sqlname.Quote(l.Column(field).Name), i+1, ins.params[i].cast)
	}
	id := "t." + sqlname.Quote(l.Columns.ID.Name)
	table := sqlname.Qualified(l.Schema, l.Table)
	lookup := fmt.Sprintf("(SELECT %s FROM %s t WHERE %s)", id, table, equal(layouts.FieldID))
	if len(scope) > 1 {
		var keys []string
		for _, field := range scope[1:] {
			keys = append(keys, equal(field))
		}
		lookup = fmt.Sprintf("coalesce(%s,\n  (SELECT %s FROM %s t WHERE %s))", lookup, id, table, strings.Join(keys, " AND "))
	}
	arrays, names := ins.unnest(columns)
	sql = fmt.Sprintf("SELECT place, id FROM (\n  SELECT place, %s AS id\n  FROM unnest(%s) WITH ORDINALITY AS old(%s, place)\n) AS found\nWHERE id IS NOT NULL",
		lookup, arrays, names)
	return sql, columns
}
