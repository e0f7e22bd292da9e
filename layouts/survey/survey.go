// Package survey examines a database before migrations run, and finds what would stop them halfway: names that are
// taken, tables that do not fit, migrations that are recorded as applied but whose tables are gone. It writes
// nothing. It reads from a migration's file what the migration creates.
package survey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/pgstore"
)

// ErrConflict means that the migrations cannot run on a database. The error says what is wrong and what to do.
var ErrConflict = errors.New("nothing was changed")

// DB is a pgx connection, pool or transaction.
type DB interface {
	pgstore.Querier
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Set is a set of goose migrations whose objects are in the first schema of the search path.
type Set struct {
	// Files are the migrations.
	Files fs.FS
	// Versions is the table in which goose records applied migrations.
	Versions string
}

// Findings are what a database has of the objects of a set.
type Findings struct {
	// Taken are the objects of pending migrations that already exist. An object that is what the migration would
	// create has no Problem; tables are not judged here.
	Taken []Object
	// Lost are objects of applied migrations that are gone. It includes tables of others that migrations added to.
	Lost []Object

	all, made []Object
	missing   []Object // not applied, and not there
	added     []Object // values of existing enums
	noted     []int64
	versions  string
}

// Look compares the set with the database. A version table that is not goose's is an ErrConflict.
func (s Set) Look(ctx context.Context, db DB) (*Findings, error) {
	list, added, err := objects(s.Files)
	if err != nil {
		return nil, err
	}
	// A migration is recorded in the transaction that creates its tables. Read the record before and after the
	// objects, so that a concurrent migration looks neither like a name conflict nor like a lost table.
	before, err := s.noted(ctx, db)
	if err != nil {
		return nil, err
	}
	there, err := s.there(ctx, db, list)
	if err != nil {
		return nil, err
	}
	after, err := s.noted(ctx, db)
	if err != nil {
		return nil, err
	}
	f := &Findings{all: list, added: added, noted: before, versions: s.Versions}
	for _, o := range list {
		found, exists := there[key{o.Kind, o.Name}]
		switch {
		case exists && !slices.Contains(after, o.Version):
			o.Problem = found.differs(o)
			f.Taken = append(f.Taken, o)
		case !exists && slices.Contains(before, o.Version):
			f.Lost = append(f.Lost, o)
		case slices.Contains(before, o.Version):
			f.made = append(f.made, o)
		case !exists:
			f.missing = append(f.missing, o)
		}
	}
	f.Lost = append(f.Lost, f.takenBack()...)
	return f, nil
}

// LostError says how to restore what is lost; nil if nothing is. A lost index does not count: everything works
// without it, more slowly, and a person may have replaced it.
func (f *Findings) LostError() error {
	lost := slices.DeleteFunc(slices.Clone(f.Lost), func(o Object) bool { return o.Kind == Index })
	if len(lost) == 0 {
		return nil
	}
	versions := f.lostVersions()
	var statements []string
	for _, o := range f.made {
		if o.Kind == Table && slices.Contains(versions, o.Version) {
			statements = append(statements, "DROP TABLE "+quoted(o.Name))
		}
	}
	statements = append(statements, fmt.Sprintf("DELETE FROM %s WHERE version_id IN (%s)", f.versions, join(versions, ", ")))
	return fmt.Errorf("%w: %s records the migrations %s as applied, but what they created or added to is gone: %s. Restore it from a backup; "+
		"or, to create it again, empty, run %s; then migrate again",
		ErrConflict, f.versions, join(versions, ", "), join(lost, ", "), strings.Join(statements, "; "))
}

// takenBack returns the tables that others created, and dropped after migrations had added an index or an enum
// value.
func (f *Findings) takenBack() (tables []Object) {
	for _, table := range f.missing {
		indexOf := func(o Object) bool { return o.Kind == Index && o.table == table.Name }
		valueOf := func(value Object) bool {
			sameType := func(o Object) bool { return o.Kind == Type && o.Name == value.Name && o.Version == table.Version }
			return slices.Contains(f.noted, value.Version) && slices.ContainsFunc(f.missing, sameType)
		}
		if table.Kind == Table && (slices.ContainsFunc(f.Lost, indexOf) || slices.ContainsFunc(f.added, valueOf)) {
			tables = append(tables, table)
		}
	}
	return tables
}

// lostVersions returns the migrations to apply again, including those of indexes that were dropped with their
// tables and those that added an enum value.
func (f *Findings) lostVersions() (versions []int64) {
	for _, o := range f.Lost {
		if slices.Contains(f.noted, o.Version) {
			versions = append(versions, o.Version)
		}
	}
	for _, value := range f.added {
		sameType := func(o Object) bool { return o.Kind == Type && o.Name == value.Name }
		if slices.Contains(f.noted, value.Version) && (slices.ContainsFunc(f.Lost, sameType) || slices.ContainsFunc(f.missing, sameType)) {
			versions = append(versions, value.Version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

func join[T any](list []T, separator string) string {
	words := make([]string, len(list))
	for i, item := range list {
		words[i] = fmt.Sprint(item)
	}
	return strings.Join(words, separator)
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
