// Package survey looks at a database before migrations run, so that what would stop them half-way is known before anything is
// written: names that somebody else has taken, tables that do not fit, migrations that are noted as applied and whose tables are
// gone. It writes nothing. What a migration makes is read from its file.
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

// ErrConflict means that a database is not as migrations need it. The error says what is wrong and what to do.
var ErrConflict = errors.New("nothing was changed")

// DB is a connection, a pool or a transaction of pgx.
type DB interface {
	pgstore.Querier
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Set is a set of goose migrations whose names are those of the schema that is first in the search path.
type Set struct {
	// Files are the migrations.
	Files fs.FS
	// Versions is the table in which goose notes what was applied.
	Versions string
}

// Findings are what a database has of the things that a set makes.
type Findings struct {
	// Taken are things that migrations to come would make, and that are there already. Those that are what the migration
	// would make have no Problem; of tables that is not judged.
	Taken []Object
	// Lost are things that migrations have made, by what goose noted, and that are gone; and tables of somebody else that
	// were there when migrations added to them, and are gone.
	Lost []Object

	all, made []Object
	missing   []Object // not noted, and not there
	added     []Object // values, to enums that are there
	noted     []int64
	versions  string
}

// Look compares. A version table that is not goose's is an ErrConflict.
func (s Set) Look(ctx context.Context, db DB) (*Findings, error) {
	list, added, err := objects(s.Files)
	if err != nil {
		return nil, err
	}
	// A migration is noted in the transaction that makes its tables. What is noted is read before and after the objects, so that
	// one who migrates beside us looks neither like a stranger nor like one who has lost his tables.
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

// LostError says how to get back what is lost; nil if nothing is. An index is no reason: without it all goes on, more slowly, and
// somebody may have replaced it.
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
	return fmt.Errorf("%w: %s notes the migrations %s as applied, and what they made or added to is gone: %s. Restore it from a backup; "+
		"or, to have it made again and empty, run %s; and then migrate again",
		ErrConflict, f.versions, join(versions, ", "), join(lost, ", "), strings.Join(statements, "; "))
}

// takenBack are the tables that somebody else made, and dropped after migrations had added to them: an index, or a value to their enums.
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

// lostVersions are the migrations to apply again: those of the indexes, too, which went with their tables, and those that added a value
// to an enum.
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
