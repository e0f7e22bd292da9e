package pgstore

import "github.com/packfinderz/outbox/internal/sqlname"

// quote makes a checked name an SQL identifier.
func quote(name string) string { return sqlname.Quote(name) }

// literal makes a checked text an SQL string.
func literal(text string) string { return sqlname.Literal(text) }
