package pgstream

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// LayoutName is the stream's name among the layouts.
const LayoutName = "standard"

// Stream is the place of a stream: the schema its tables are in. The zero value is the
// schema that is first in the search path.
type Stream struct {
	// Schema is where the tables are; empty for the search path.
	Schema string
}

// LayoutName returns the constant LayoutName. It makes a Stream an outbox.Target.
func (s Stream) LayoutName() string { return LayoutName }

// table is the name of one of the stream's tables or functions, as SQL.
func (s Stream) table(name string) string { return streamsql.Table(s.Schema, name) }

// placed is the stream with the schema in which the search path finds it now.
func (s Stream) placed(ctx context.Context, db Querier) (Stream, error) {
	if s.Schema != "" {
		return s, nil
	}
	schema, err := sqlname.Place(ctx, db, "outbox_stream")
	if err != nil {
		return s, fmt.Errorf("outbox: look for the stream's schema: %w", err)
	}
	return Stream{Schema: schema}, nil
}

// Validate refuses a schema name that PostgreSQL cannot have.
func (s Stream) Validate() error {
	if s.Schema == "" {
		return nil
	}
	if problem := sqlname.Problem(s.Schema); problem != "" {
		return fmt.Errorf("outbox: the stream's schema %s", problem)
	}
	return nil
}

// Shape is what is chosen when a stream is made, and cannot be changed later.
type Shape struct {
	// Slots is how many slots the ring has. Default 8; 3 to 100.
	Slots int
	// SlotLength is how long events are written to one slot. Default a day; whole seconds.
	// Events are kept for at least Slots-2 times as long.
	SlotLength time.Duration
	// Shards is the number of parts that keys are divided into, each read by one relay at a time. Default 8; a power of two
	// up to 256.
	Shards int
}

// Defaults of Shape.
const (
	DefaultSlots      = 8
	DefaultSlotLength = 24 * time.Hour
	DefaultShards     = 8
)

// WithDefaults fills in what is zero and refuses what cannot work.
func (s Shape) WithDefaults() (Shape, error) {
	s.Slots, s.SlotLength, s.Shards = cmp.Or(s.Slots, DefaultSlots), cmp.Or(s.SlotLength, DefaultSlotLength), cmp.Or(s.Shards, DefaultShards)
	switch {
	case s.Slots < 3 || s.Slots > 100:
		// One is written, one is emptied for the next turn, one at least keeps what was written.
		return s, fmt.Errorf("outbox: the ring has %d slots; choose 3 to 100", s.Slots)
	case s.SlotLength < time.Second || s.SlotLength > 366*24*time.Hour || s.SlotLength%time.Second != 0:
		return s, fmt.Errorf("outbox: a slot's length is %s; choose whole seconds, from one to a year of them", s.SlotLength)
	case s.Shards < 1 || s.Shards > 256 || bits.OnesCount(uint(s.Shards)) != 1:
		return s, fmt.Errorf("outbox: there are %d shards; choose a power of two up to 256", s.Shards)
	}
	return s, nil
}

// String is the shape in words.
func (s Shape) String() string {
	return fmt.Sprintf("%d slots of %s and %d shards", s.Slots, s.SlotLength, s.Shards)
}

// Shape reads the shape of a stream, or returns ErrNoStream.
func (s Stream) Shape(ctx context.Context, pool *pgxpool.Pool) (Shape, error) {
	return s.shape(ctx, pool)
}

func (s Stream) shape(ctx context.Context, db Querier) (shape Shape, err error) {
	if err := s.exists(ctx, db, "outbox_settings"); err != nil {
		return shape, err
	}
	return s.readShape(ctx, db)
}

// exists returns ErrNoStream if a table of the stream is missing.
func (s Stream) exists(ctx context.Context, db Querier, table string) error {
	var there bool
	if err := db.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, s.table(table)).Scan(&there); err != nil {
		return fmt.Errorf("outbox: look for the stream: %w", err)
	}
	if !there {
		return fmt.Errorf("outbox: %w", ErrNoStream)
	}
	return nil
}

// readShape reads the settings.
func (s Stream) readShape(ctx context.Context, db Querier) (shape Shape, err error) {
	var seconds int
	err = db.QueryRow(ctx, s.names(`SELECT slots, slot_seconds, shards FROM {settings}`)).Scan(&shape.Slots, &seconds, &shape.Shards)
	if err != nil {
		return shape, fmt.Errorf("outbox: read the stream's shape: %w", err)
	}
	shape.SlotLength = time.Duration(seconds) * time.Second
	return shape, nil
}

//go:embed migrations/*.sql
var files embed.FS

// Migrations are the goose migrations that make a stream of this shape. They run in the
// schema that is first in the search path.
func Migrations(shape Shape) (fs.FS, error) {
	shape, err := shape.WithDefaults()
	if err != nil {
		return nil, err
	}
	values := struct {
		Slots, SlotSeconds, Shards, MaxShard int
		SlotList                             []int
	}{
		Slots: shape.Slots, SlotSeconds: int(shape.SlotLength / time.Second),
		Shards: shape.Shards, MaxShard: shape.Shards - 1,
	}
	for slot := range shape.Slots {
		values.SlotList = append(values.SlotList, slot)
	}
	return migrations.Render(files, func(sql string) (string, error) {
		parsed, err := template.New("migration").Parse(sql)
		if err != nil {
			return "", errors.Join(errors.New("outbox: read a migration"), err)
		}
		var rendered strings.Builder
		if err := parsed.Execute(&rendered, values); err != nil {
			return "", fmt.Errorf("outbox: write a migration: %w", err)
		}
		return rendered.String(), nil
	})
}
