package doctor

import (
	"context"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/ops"
)

// patient is what differs between examining a queue table and a stream.
type patient interface {
	// name is what people call it.
	name() string
	// schema is the schema of its tables; empty for the search path.
	schema() string
	// wakes is the SQL name of the table that relays listen to.
	wakes() string
	// relations are its tables, with the rights needed on each.
	relations() []relation
	// verify compares the tables with what they should be.
	verify(ctx context.Context, e *exam) (well string, err error)
	// indexes looks for missing indexes.
	indexes(ctx context.Context, e *exam) error
	// relays looks for events that nobody claims.
	relays(ctx context.Context, e *exam) (well string, err error)
	// stuck looks for events that were claimed and never settled.
	stuck(ctx context.Context, e *exam) (well string, err error)
	// retention looks for events that should have been purged.
	retention(ctx context.Context, e *exam) (well string, err error)
	// deaf says what it means if notifications do not arrive.
	deaf() string
}

// patientOf returns an outbox as a patient. Of a stream, all subscriptions are examined.
func patientOf(o *ops.Outbox) patient {
	place := o.Place()
	if place.Stream != nil {
		return streamPatient{*place.Stream}
	}
	return tablePatient{tablesql.Layout{Layout: *place.Layout}}
}

// relation is a table, a sequence or a set of tables, with the rights on it.
type relation struct {
	// name is its name as SQL; sequence is set for a sequence, slots if it stands for its partitions.
	name            string
	sequence, slots bool
	// churns is set if rows are updated and deleted, so that vacuum has work.
	churns bool
	// relay, purge, emit and operate are the rights that each use needs, such as SELECT, or SELECT (id) on a
	// column. operate is what a person needs, besides relay, to look at events and change them.
	relay, purge, emit, operate []string
	// written are the columns that INSERT and UPDATE write: rights on these are enough.
	written map[string][]string
}
