package pgtest

// Databases for runnable examples, which have no testing.TB.

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Example returns a pool on a fresh database with the tables of some migrations and of a statement of the example's
// own, and a function that drops it. An example that cannot have one fails: its output is the error.
func Example(sql string, files ...fs.FS) (pool *pgxpool.Pool, done func(), err error) {
	ctx := context.Background()
	server, err := attached()
	if err != nil {
		return nil, nil, err
	}
	name, err := server.createDatabase(ctx)
	if err != nil {
		return nil, nil, err
	}
	pool, err = pgxpool.New(ctx, server.url(name))
	if err != nil {
		return nil, nil, fmt.Errorf("pgtest: connecting: %w", err)
	}
	for _, layout := range files {
		if err := migrate(ctx, pool, "", layout); err != nil {
			return nil, nil, err
		}
	}
	if _, err := pool.Exec(ctx, sql); err != nil {
		return nil, nil, fmt.Errorf("pgtest: running %q: %w", sql, err)
	}
	return pool, func() {
		pool.Close()
		if err := server.dropDatabase(ctx, name); err != nil {
			fmt.Println(err)
		}
	}, nil
}
