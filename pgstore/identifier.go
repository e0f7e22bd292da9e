package pgstore

import (
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// quote makes a checked name an SQL identifier.
func quote(name string) string { return sqlname.Quote(name) }

// literal makes a checked text an SQL string.
func literal(text string) string { return sqlname.Literal(text) }

// t is a column of the table, which every statement calls t.
func t(column layouts.Column) string { return tablesql.T(column) }
