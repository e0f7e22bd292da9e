package doctor_test

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
)

// A table that was adopted without the index that the claim needs.
func Example() {
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(`DROP INDEX idx_modkit_outbox_events_claim`, files) // a database of the example's own
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	events, err := ops.Table(pool, modkit.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := doctor.Examine(context.Background(), events, doctor.Config{Checks: []string{"layout", "indexes", "keys"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, finding := range report.Findings {
		fmt.Printf("%s %s: %s\n", finding.Severity, finding.Check, finding.Seen)
		if finding.Do != "" {
			fmt.Println("do:", finding.Do)
		}
	}
	fmt.Println("the worst is a", report.Worst())
	// Output:
	// ok layout: table "modkit_outbox_events" is what layout modkit says
	// warning indexes: no valid index of "modkit_outbox_events" serves the claim, which takes the oldest events that wait: it reads or sorts more with every event that is kept
	// do: CREATE INDEX CONCURRENTLY ON "modkit_outbox_events" ("next_attempt_at", "id") WHERE "status" = 'pending';
	// ok keys: a queue table keeps no order of keys, so that none waits
	// the worst is a warning
}

// A relay's readiness asks whether its role may do what it has to.
func ExampleRights() {
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example(`SELECT`, files) // a database of the example's own
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	events, err := ops.Table(pool, modkit.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(doctor.Rights(context.Background(), events, doctor.UseRelay))
	// Output: <nil>
}
