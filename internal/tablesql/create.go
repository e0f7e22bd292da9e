package tablesql

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/layouts"
)

// Create makes the tables, where they are missing, as the layout describes them. Its enum types have to be there.
// Indexes are Keys and Needs.
func (l *Layout) Create() string {
	sql := l.create(l.Events(), l.Columns.All())
	if l.DeadLetter == nil {
		return sql
	}
	letters := l.DeadLetter.Columns.All()
	for i, c := range letters {
		if from := l.Column(c.Field); c.Name != "" && from.Name != "" { // a letter's columns have the types of the event's
			letters[i].Type, letters[i].Enum, letters[i].MaxLength = from.Type, from.Enum, from.MaxLength
		}
	}
	return sql + " " + l.create(l.Letters(), letters)
}

func (l *Layout) create(table string, columns []layouts.NamedColumn) string {
	var list []string
	for _, c := range columns {
		if c.IsZero() {
			continue
		}
		column := Name(c.Column) + " " + l.SQLType(c.Column, c.Field)
		if c.MaxLength > 0 && strings.HasSuffix(column, " text") {
			column = fmt.Sprintf("%s varchar(%d)", Name(c.Column), c.MaxLength)
		}
		switch {
		case c.Field == layouts.FieldID:
			column += " PRIMARY KEY"
		case c.Field == layouts.FieldAttempts:
			column += " NOT NULL DEFAULT 0"
		case c.Field == layouts.FieldCreatedAt:
			column += " NOT NULL DEFAULT now()"
		case c.NotNull:
			column += " NOT NULL"
		}
		list = append(list, column)
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s);", table, strings.Join(list, ", "))
}
