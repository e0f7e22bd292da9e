package survey_test

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/layouts/survey"
)

// Another type has a name that the outbox needs. The survey notices before anything is created.
func Example() {
	ctx := context.Background()
	pool, done, err := pgtest.Example(`CREATE TYPE aggregate_type_enum AS ENUM ('user')`)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	layout := packfinderz.Layout()
	files, err := packfinderz.Migrations(layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = survey.Set{Files: files, Versions: "goose_db_version"}.NewPlan(ctx, pool, layout)
	fmt.Println(err)
	// Output:
	// nothing was changed: type "aggregate_type_enum" is there already and has no value vendor_order, checkout_group, license and 5 more: rename it (ALTER TYPE "aggregate_type_enum" RENAME TO …), or, if it is meant to be the outbox's, add what it lacks (ALTER TYPE "aggregate_type_enum" ADD VALUE …); then migrate again
}
