package pgstore

import (
	"strings"

	"github.com/packfinderz/outbox/internal/sqlname"
)

// quote makes a checked name an SQL identifier.
func quote(name string) string { return sqlname.Quote(name) }

// literal makes a checked text an SQL string, whatever standard_conforming_strings says.
func literal(text string) string {
	quoted := `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
	if strings.Contains(text, `\`) {
		return `E` + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// qualified puts a checked name into the layout's schema.
func (l *Layout) qualified(name string) string {
	if l.Schema == "" {
		return quote(name)
	}
	return quote(l.Schema) + "." + quote(name)
}
