package pginbox_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestMigrate makes tables of any name in any schema, does nothing the second time, and leaves a table of somebody else alone.
func TestMigrate(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, config := range []pginbox.Config{{}, {Schema: "billing"}, {Schema: `a"b; --`, Table: `x"; DROP TABLE y; --'$$`}, {Table: "marks"}} {
		for range 2 {
			if err := pginbox.Migrate(t.Context(), pool, config); err != nil {
				t.Fatalf("%+v: %v", config, err)
			}
		}
		inbox, err := pginbox.New(config)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if first, err := inbox.Mark(t.Context(), tx, "billing", uuid.New()); err != nil || !first {
			t.Errorf("%+v: mark: %v, %v", config, first, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, pool, `CREATE TABLE theirs (id int)`)
	err := pginbox.Migrate(t.Context(), pool, pginbox.Config{Table: "theirs"})
	if err == nil || !strings.Contains(err.Error(), "was not made by outbox") {
		t.Errorf("a table of somebody else: %v", err)
	}
}
