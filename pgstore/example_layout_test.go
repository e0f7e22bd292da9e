package pgstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// ourLayout is the layout of docs/layouts.md as a Go value.
func ourLayout() layouts.Layout {
	return layouts.Layout{
		Name:        "ours",
		Table:       "our_events",
		Hold:        layouts.HoldRowLock,
		Done:        layouts.DoneTimestamp,
		Count:       layouts.CountOnFailure,
		Terminal:    layouts.TerminalDeadLetter,
		MaxAttempts: 10,
		Columns: layouts.Columns{
			ID:          layouts.Column{Name: "event_id"},
			Topic:       layouts.Column{Name: "topic"},
			Type:        layouts.Column{Name: "kind", NotNull: true, MaxLength: 50},
			Key:         layouts.Column{Name: "subject"},
			Payload:     layouts.Column{Name: "body", Type: "json"},
			Attempts:    layouts.Column{Name: "tries"},
			LastError:   layouts.Column{Name: "last_error"},
			CreatedAt:   layouts.Column{Name: "created"},
			DeliveredAt: layouts.Column{Name: "sent"},
		},
		DeadLetter: &layouts.DeadLetter{
			Table: "our_dead_events",
			Columns: layouts.DeadLetterColumns{
				ID:        layouts.Column{Name: "id"},
				EventID:   layouts.Column{Name: "event_id"},
				Type:      layouts.Column{Name: "kind"},
				Payload:   layouts.Column{Name: "body"},
				Reason:    layouts.Column{Name: "why"},
				FailedAt:  layouts.Column{Name: "failed"},
				Attempts:  layouts.Column{Name: "tries"},
				LastError: layouts.Column{Name: "last_error"},
				RetriedAt: layouts.Column{Name: "retried"},
			},
		},
	}
}

// ourTables are the tables of docs/layouts.md.
const ourTables = `
CREATE TABLE our_events (
    event_id   uuid        PRIMARY KEY,
    topic      text        NOT NULL,
    kind       varchar(50) NOT NULL,
    subject    text,
    body       json        NOT NULL,
    tries      integer     NOT NULL DEFAULT 0,
    last_error text,
    created    timestamptz NOT NULL DEFAULT now(),
    sent       timestamptz
);
CREATE TABLE our_dead_events (
    id         uuid        PRIMARY KEY,
    event_id   uuid        NOT NULL,
    kind       varchar(50) NOT NULL,
    body       json        NOT NULL,
    why        text        NOT NULL,
    failed     timestamptz NOT NULL,
    tries      integer     NOT NULL,
    last_error text,
    retried    timestamptz
);
`

// A program that emits to a table of its own checks at its start that the table is what the layout says.
func ExampleVerifyEmit() {
	pool, done, err := pgtest.Example(ourTables)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	ctx := context.Background()
	fmt.Println(pgstore.VerifyEmit(ctx, pool, ourLayout()))

	if _, err := pool.Exec(ctx, `ALTER TABLE our_events DROP COLUMN tries`); err != nil {
		fmt.Println(err)
	}
	fmt.Println(pgstore.VerifyEmit(ctx, pool, ourLayout()))
	// Output:
	// <nil>
	// outbox: the table does not match the layout ours: table "our_events" has no column "tries" for attempts
}

// TestLayoutsPage keeps the tables on the page those that are created here.
func TestLayoutsPage(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../docs/layouts.md", "sql", "example_layout_test.go")
}
