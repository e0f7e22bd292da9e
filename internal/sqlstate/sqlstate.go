// Package sqlstate reads the codes of PostgreSQL's errors, whatever the driver.
package sqlstate

import (
	"errors"
	"fmt"
)

// Codes that this module handles, by PostgreSQL's names for them.
const (
	ReadOnlyTransaction   = "25006"
	ForeignKeyViolation   = "23503"
	UniqueViolation       = "23505"
	InsufficientPrivilege = "42501"
	UndefinedTable        = "42P01" // or its schema is missing
	DuplicateTable        = "42P07"
	LockNotAvailable      = "55P03"
)

// Of is the code of an error of the server's; empty for any other.
func Of(err error) string {
	var refused interface{ SQLState() string }
	if errors.As(err, &refused) {
		return refused.SQLState()
	}
	return ""
}

// ExplainMissing says what to do where a layout's table is not there, and leaves other errors as they
// are.
func ExplainMissing(err error, layout string) error {
	if Of(err) != UndefinedTable {
		return err
	}
	return fmt.Errorf("%w; %s, or mend the search path", err, HowToMake(layout))
}

// HowToMake says how to make a layout's table.
func HowToMake(layout string) string {
	if HasMigrations(layout) {
		return "make the table with outbox migrate up --layout " + layout
	}
	return "make the table of layout " + layout + " yourself; outbox doctor prints the statement"
}

// HasMigrations reports whether the program has migrations for a layout: the stream, and the shipped ones.
func HasMigrations(layout string) bool {
	switch layout {
	case "standard", "doorito", "modkit", "packfinderz":
		return true
	}
	return false
}
