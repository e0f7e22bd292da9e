package doctor

import (
	"context"

	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// Target is what is examined: a queue table or a stream. There are no others.
type Target interface {
	// Name is what people call it.
	Name() string

	// schema is where its tables are; empty for the search path.
	schema() string
	// wakes is the table that relays listen to, as SQL.
	wakes() string
	// relations are its tables, with the rights that are needed on each.
	relations() []relation
	// verify compares the tables with what they should be.
	verify(ctx context.Context, e *exam) error
	// restored looks for cursors of another server.
	restored(ctx context.Context, e *exam) error
	// promotion looks for a standby that became the primary.
	promotion(ctx context.Context, e *exam) error
	// indexes looks for those that are missing.
	indexes(ctx context.Context, e *exam) error
	// subscriptions looks for those that need a person.
	subscriptions(ctx context.Context, e *exam) error
	// relays looks for events that nobody takes.
	relays(ctx context.Context, e *exam) error
	// stuck looks for events that somebody took and did not settle.
	stuck(ctx context.Context, e *exam) error
	// keys looks for keys that wait for a person.
	keys(ctx context.Context, e *exam) error
	// topics looks for those that take nothing.
	topics(ctx context.Context, e *exam) error
	// retention looks for what should have been purged.
	retention(ctx context.Context, e *exam) error
	// deaf says what it means that notifications do not arrive.
	deaf() (severity Severity, means, do string)
}

// Table is the queue table that a layout describes.
func Table(layout pgstore.Layout) (Target, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	return queueTable{layout}, nil
}

// Stream is the stream at a place.
func Stream(stream pgstream.Stream) (Target, error) {
	if err := stream.Validate(); err != nil {
		return nil, err
	}
	return streamTarget{stream}, nil
}

// relation is a table, a sequence or a set of tables, with the rights on it.
type relation struct {
	// name is its name as SQL; sequence is set for a sequence, slots for the partitions of it.
	name            string
	sequence, slots bool
	// churns is set where rows are updated and deleted, so that vacuum has work.
	churns bool
	// relay, purge, emit and operate are the rights that each needs, such as SELECT, or SELECT (id) on a
	// column. operate is what a person needs to look at events and to change them, beside relay.
	relay, purge, emit, operate []string
	// written are the columns that INSERT and UPDATE write: rights on these are enough.
	written map[string][]string
}
