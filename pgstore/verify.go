package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/packfinderz/outbox/internal/tablecheck"
	"github.com/packfinderz/outbox/layouts"
)

// ErrMismatch means that the table is missing or not what the layout says. A *MismatchError says what differs.
var ErrMismatch = tablecheck.ErrMismatch

// ErrNoTable means that a table of the layout is missing. It comes with ErrMismatch.
var ErrNoTable = tablecheck.ErrNoTable

// MismatchError lists what keeps a table from working. It matches ErrMismatch.
type MismatchError struct {
	// Layout is the layout's name.
	Layout string
	// Mismatches are what does not fit.
	Mismatches []Mismatch
}

// Mismatch is one thing that does not fit.
type Mismatch struct {
	// Table is the table, as SQL.
	Table string
	// Column is the column's name; empty if the problem is the table's.
	Column string
	// Problem says what was found and what is needed, as a sentence without its full stop.
	Problem string
	// OnlyEmit is set if only emit needs it: relays and people can do their work all the same.
	OnlyEmit bool
	// Lacks are the values that the column's enum lacks, if that is all that is wrong.
	Lacks []string
}

// shownMismatches is how many of them an error names. Doctor lists them all.
const shownMismatches = 3

// Error is one line.
func (e *MismatchError) Error() string {
	var parts []string
	for _, m := range e.Mismatches[:min(shownMismatches, len(e.Mismatches))] {
		parts = append(parts, m.Problem)
	}
	text := fmt.Sprintf("outbox: %v %s: %s", ErrMismatch, e.Layout, strings.Join(parts, "; "))
	if more := len(e.Mismatches) - shownMismatches; more > 0 {
		text += fmt.Sprintf("; and %d more, which outbox doctor lists", more)
	}
	return text
}

// Unwrap makes errors.Is(err, ErrMismatch) hold.
func (e *MismatchError) Unwrap() error { return ErrMismatch }

// Verify reads the description of the store's tables and reports, as ErrMismatch, what does not fit the layout. It writes
// nothing.
func (s *Store) Verify(ctx context.Context) error { return verify(ctx, s.pool, s.layout.Layout, false) }

// Verify reads the description of the layout's tables and reports, as a *MismatchError, what would keep relays and people
// from their work: columns that are missing, of a type that statements cannot use, or too short. It writes nothing, and
// waits for no lock.
func Verify(ctx context.Context, db Querier, l layouts.Layout) error {
	return verify(ctx, db, l, false)
}

// VerifyEmit is Verify for a program that also emits: it reports what would refuse new rows as well.
func VerifyEmit(ctx context.Context, db Querier, l layouts.Layout) error {
	return verify(ctx, db, l, true)
}

func verify(ctx context.Context, db Querier, l layouts.Layout, emits bool) error {
	list, err := Mismatches(ctx, db, l)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(m Mismatch) bool { return m.OnlyEmit && !emits })
	if len(list) == 0 {
		return nil
	}
	return &MismatchError{Layout: l.Name, Mismatches: list}
}

// Mismatches lists everything that does not fit the layout, also what concerns only emit.
func Mismatches(ctx context.Context, db Querier, l layouts.Layout) ([]Mismatch, error) {
	found, err := tablecheck.Mismatches(ctx, db, l)
	list := make([]Mismatch, len(found))
	for i, m := range found {
		list[i] = Mismatch(m)
	}
	return list, err
}
