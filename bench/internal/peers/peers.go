// Package peers runs other PostgreSQL queues for Go on a workload of events, so that the benchmark can print their
// rates beside ours from one run on one server. Each is as fast as its public configuration makes it.
package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultBatch is how many events our own relay is measured with, too.
	defaultBatch = 1000
	// insertSize is how many events are inserted in one transaction before the clock starts.
	insertSize = 1000
)

// The names of the peers that something is promised against.
const (
	River          = "river"
	WatermillQueue = "watermill-sql, queue, delete on ack"
)

// Workload is what a peer has to consume.
type Workload struct {
	// Events is how many events there are.
	Events int
	// Payload is the payload of each of them. It must be JSON: that is what the peers' tables hold.
	Payload []byte
	// Batch is how many events are read at once by a peer that lets one choose. Default: 1,000. A crash repeats up to
	// this many events, so that rates are comparable only at the same size.
	Batch int
}

// Peer is a queue to compare with.
type Peer struct {
	// Name tells the peer, and the mode it runs in, from the others.
	Name string
	// Module is the path of the Go module that is measured. The build information has its version.
	Module string
	// Settings says how the peer is tuned, for the reader of the rates.
	Settings string
	// Run makes the peer's tables in the empty database at url and inserts the workload. It returns the time from the
	// start of a consumer that does nothing to the moment when every event is handled and acknowledged in the database.
	// A peer that lost, repeated or left an event gives an error instead. Run ends all that it has started; the tables
	// stay.
	Run func(ctx context.Context, url string, w Workload) (time.Duration, error)
}

// All returns the peers.
func All() []Peer {
	return []Peer{riverJobs(), watermillOffsets(), watermillQueue()}
}

// open checks the workload and connects to its database.
func open(ctx context.Context, url string, w Workload) (*pgxpool.Pool, error) {
	if w.Events < 1 || w.Batch < 0 {
		return nil, fmt.Errorf("a workload of %d events in batches of %d", w.Events, w.Batch)
	}
	if !json.Valid(w.Payload) {
		return nil, errors.New("the payload is not JSON")
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return pool, nil
}

// settle does what inserting leaves to be done in a table, so that it does not fall into the time that is measured, and
// gives the planner the statistics that a table in use has. There is no checkpoint: it would make the consumer write
// every page of the table to the WAL once more, which a queue that is consumed soon after it is filled does not do.
func settle(ctx context.Context, pool *pgxpool.Pool, table string) error {
	if _, err := pool.Exec(ctx, "VACUUM ANALYZE "+table); err != nil {
		return fmt.Errorf("vacuuming %s: %w", table, err)
	}
	return nil
}

// verify checks how many events the handler saw, and by a query how many the database still has to acknowledge.
func verify(ctx context.Context, pool *pgxpool.Pool, w Workload, handled int64, countOpen string) error {
	if handled != int64(w.Events) {
		return fmt.Errorf("%d events were handled, want %d", handled, w.Events)
	}
	rows, err := pool.Query(ctx, countOpen)
	if err != nil {
		return fmt.Errorf("counting events that are not acknowledged: %w", err)
	}
	left, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("counting events that are not acknowledged: %w", err)
	}
	if left != 0 {
		return fmt.Errorf("%d of %d events are not acknowledged", left, w.Events)
	}
	return nil
}
