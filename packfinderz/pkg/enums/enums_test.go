package enums_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// The values are those of the database, in its order.
func TestEnumsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	pool := pftest.Pool(t)
	compare(t, pool, "event_type_enum", enums.EventTypes())
	compare(t, pool, "aggregate_type_enum", enums.AggregateTypes())
	compare(t, pool, "outbox_dlq_reason_enum", enums.ErrorReasons())
}

func compare[T ~string](t *testing.T, pool *pgxpool.Pool, name string, want []T) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT enumlabel::text FROM pg_enum WHERE enumtypid = to_regtype($1) ORDER BY enumsortorder`, name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s is %v (%v), and the code has %v", name, got, err, want)
	}
}
