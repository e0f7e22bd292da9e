package pgstore_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/pgstore"
)

// A service that is on database/sql gives a relay its own connections.
func ExampleNewSQL() {
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(``, files)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	db := stdlib.OpenDBFromPool(pool) // or sql.Open("pgx", …)
	defer func() { _ = db.Close() }()

	store, err := pgstore.NewSQL(db, modkit.Layout(), pgstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	batch, err := store.Claim(context.Background(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(batch.Messages()), "events")
	// Output: 0 events
}
