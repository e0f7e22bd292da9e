package pgstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
)

// Migrate makes a stream of the default shape in the first schema of the search path, or brings the one that is there up to
// date. It is Stream{}.Migrate(ctx, pool, Shape{}).
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	return Stream{}.Migrate(ctx, pool, Shape{})
}

// Migrate makes the stream, and its schema if that is missing, or brings it up to date. A zero field of shape stands for
// the default in a new stream, and for what it is in an existing one; an existing stream of another shape is an error. So
// is a table of the stream's name that these migrations have not made, and a stream of which something is gone.
//
// It does the same as outbox migrate up and notes it in the same place, so that either can go on where the other ended.
// It may run in several processes at once.
func (s Stream) Migrate(ctx context.Context, pool *pgxpool.Pool, shape Shape) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if _, err := shape.WithDefaults(); err != nil {
		return err
	}
	set := migrations.Set{Schema: s.Schema, Layout: LayoutName, Table: "outbox_stream", Files: func(ctx context.Context, db migrations.DB) (fs.FS, error) {
		// A stream further along the search path is another one.
		var place Stream
		if err := db.QueryRow(ctx, `SELECT coalesce(current_schema(), '')`).Scan(&place.Schema); err != nil {
			return nil, fmt.Errorf("look for the schema: %w", err)
		}
		is, err := place.shape(ctx, db)
		switch {
		case errors.Is(err, ErrNoStream):
			return Migrations(shape)
		case err != nil:
			return nil, err
		case !shape.Allows(is):
			return nil, fmt.Errorf("the stream has %s, and keeps them; for another shape make a stream in another schema", is)
		}
		return Migrations(is)
	}}
	if err := set.Up(ctx, pool); err != nil {
		return fmt.Errorf("outbox: migrate the stream: %w", err)
	}
	return s.CheckSchema(ctx, pool)
}

// Allows reports whether a stream of shape is has what s asks for. What is zero in s asks for nothing.
func (s Shape) Allows(is Shape) bool {
	return cmp.Or(s.Slots, is.Slots) == is.Slots && cmp.Or(s.SlotLength, is.SlotLength) == is.SlotLength &&
		cmp.Or(s.Shards, is.Shards) == is.Shards
}
