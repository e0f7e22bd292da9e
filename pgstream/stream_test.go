package pgstream_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestMigrations(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
}
