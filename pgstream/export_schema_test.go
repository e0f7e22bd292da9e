package pgstream

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5/pgxpool"
)

// slotNumber is that of a slot in an object's name.
var slotNumber = regexp.MustCompile(`^outbox_stream_\d+`)

// NeedLines are the lines of the table of needs, each with the migration it names.
func NeedLines() map[string]int {
	lines := make(map[string]int, len(needs))
	for _, n := range needs {
		lines[n.line()] = n.since
	}
	return lines
}

// SchemaLines are the lines that the objects of a schema would have in the table of needs.
func SchemaLines(ctx context.Context, pool *pgxpool.Pool) (map[string]bool, error) {
	found, err := Stream{}.readSchema(ctx, pool, nil)
	if err != nil {
		return nil, err
	}
	lines := make(map[string]bool, len(found.objects))
	for _, o := range found.objects {
		if o.kind == "slot" || o.kind == "trigger" {
			o.name = slotNumber.ReplaceAllString(o.name, "outbox_stream_"+slotMark)
		}
		lines[o.line()] = true
	}
	return lines, nil
}

func (o object) line() string { return fmt.Sprintf("object{%q, %q, %q}", o.kind, o.name, o.detail) }

// NewestMigration is the number of the last one.
func NewestMigration() int { return newestMigration() }

// CheckSchemaAs is CheckSchema of a program that knows the migrations up to one.
func (s Stream) CheckSchemaAs(ctx context.Context, db Querier, newest int) error {
	found, err := s.readSchema(ctx, db, neededNames())
	if err != nil {
		return err
	}
	var known []need
	for _, n := range needs {
		if n.since <= newest {
			known = append(known, n)
		}
	}
	return s.judge(found, known, newest)
}

// CheckSchemaWith is CheckSchema of a program that needs one thing more.
func (s Stream) CheckSchemaWith(ctx context.Context, db Querier, kind, name, detail string) error {
	found, err := s.readSchema(ctx, db, neededNames())
	if err != nil {
		return err
	}
	return s.judge(found, append([]need{{1, object{kind, name, detail}}}, needs...), newestMigration())
}

// Need is what a program asks of the schema.
type Need struct{ Kind, Name, Detail string }

// Needs are those of this program; of each slot those of the first.
func Needs() (list []Need) {
	for _, n := range needs {
		for _, o := range n.expand(1) {
			list = append(list, Need{o.kind, o.name, o.detail})
		}
	}
	return list
}
