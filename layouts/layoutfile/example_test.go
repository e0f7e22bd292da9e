package layoutfile_test

import (
	"fmt"

	"github.com/packfinderz/outbox/layouts/layoutfile"
)

// A team's own table: no migration, only a description. It is the example of docs/layouts.md.
func ExampleParse() {
	layout, err := layoutfile.Parse([]byte(`
name: ours
table: our_events
hold: rowlock
done: timestamp
count: failure
terminal: deadletter
maxAttempts: 10
columns:
  id: event_id
  topic: topic
  type: {name: kind, notNull: true, maxLength: 50}
  key: subject
  payload: {name: body, type: json}
  attempts: tries
  lastError: last_error
  createdAt: created
  deliveredAt: sent
deadLetter:
  table: our_dead_events
  columns:
    id: id
    eventId: event_id
    type: kind
    payload: body
    reason: why
    failedAt: failed
    attempts: tries
    lastError: last_error
    retriedAt: retried
`))
	fmt.Println(layout.Table, layout.Hold, err)
	// Output: our_events rowlock <nil>
}
