package layoutfile_test

import (
	"fmt"

	"github.com/packfinderz/outbox/layouts/layoutfile"
)

// A team's own table, with leases: no migration, only a description.
func ExampleParse() {
	layout, err := layoutfile.Parse([]byte(`
name: ours
table: our_events
hold: lease
done: timestamp
count: claim
terminal: deadletter
maxAttempts: 5
columns:
  id: event_id
  type: {name: kind, notNull: true, maxLength: 50}
  payload: {name: body, type: json}
  attempts: tries
  lockedBy: owner
  lockedUntil: owned_until
  createdAt: created
  deliveredAt: sent
deadLetter:
  table: our_dead_events
  columns: {id: id, eventId: event_id, payload: body, reason: why, failedAt: failed, retriedAt: retried}
`))
	fmt.Println(layout.Table, layout.Hold, err)
	// Output: our_events lease <nil>
}
