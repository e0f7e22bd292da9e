// Package peers runs other PostgreSQL queues for Go on a workload of events, so that the benchmark can print their
// rates beside ours from one run on one server. Each is set as fast as its public configuration allows.
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

// batchSize is how many events the peers read at once, where that can be set: as many as our relay does.
const batchSize = 1000

// insertSize is how many events are inserted in one transaction before the clock starts.
const insertSize = 1000

// Workload is what a peer has to consume.
type Workload struct {
	// Events is how many events there are.
	Events int
	// Payload is the payload of each of them. It must be JSON: that is what the peers' tables hold.
	Payload []byte
}

// Peer is a queue to compare with.
type Peer struct {
	// Name tells the peer, and the mode it runs in, from the others.
	Name string
	// Module is the path of the Go module that is measured. Its version is in the build information.
	Module string
	// Settings says in which way the peer is tuned.
	Settings string
	// Run makes the peer's tables in the empty database at url and inserts the workload. It returns the time from the
	// start of a consumer that does nothing to the moment when every event is handled and acknowledged in the database.
	// A peer that lost, repeated or left an event gives an error instead. Run ends what it has started, but leaves the
	// tables.
	Run func(ctx context.Context, url string, w Workload) (time.Duration, error)
}

// All returns the peers.
func All() []Peer {
	return []Peer{riverPeer(), watermillOffsets(), watermillQueue()}
}

// open checks the workload and connects to its database.
func open(ctx context.Context, url string, w Workload) (*pgxpool.Pool, error) {
	if w.Events < 1 {
		return nil, fmt.Errorf("a workload of %d events", w.Events)
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

// settle ends what inserting leaves to do in a table, so that it does not fall into the time that is measured, and
// gives the planner the statistics that a table in use has.
func settle(ctx context.Context, pool *pgxpool.Pool, table string) error {
	if _, err := pool.Exec(ctx, "VACUUM ANALYZE "+table); err != nil {
		return fmt.Errorf("vacuuming %s: %w", table, err)
	}
	return nil
}

// verify compares how many events the handler saw, and how many are not acknowledged by a query that counts those,
// with what there must be.
func verify(ctx context.Context, pool *pgxpool.Pool, w Workload, handled int64, countOpen string) error {
	if handled != int64(w.Events) {
		return fmt.Errorf("%d events were handled, want %d", handled, w.Events)
	}
	rows, err := pool.Query(ctx, countOpen)
	if err != nil {
		return fmt.Errorf("counting open events: %w", err)
	}
	left, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("counting open events: %w", err)
	}
	if left != 0 {
		return fmt.Errorf("%d of %d events are not acknowledged", left, w.Events)
	}
	return nil
}
