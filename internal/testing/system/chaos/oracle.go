//go:build unix

package chaos

// What is under test: a queue table of some layout, or the stream.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

// oracle is an outbox that a run emits to and relays from. It reads the tables itself, and not by package ops: what is
// under test cannot be its own judge.
type oracle interface {
	// load is what producers do to it, and how many of them there are.
	load(ctx context.Context, ledger *ledger) (load, int, error)
	// inbox is where what is relayed from it arrives.
	inbox(t *testing.T, folder string) inbox
	// undelivered is how many events are committed and not settled.
	undelivered(ctx context.Context) (int, error)
	// held is how much relays have claimed for themselves.
	held(ctx context.Context) (int, error)
	// undone is how many events, settled just before, a crash of the server may make unsettled, for each relay.
	undone() int
	// problems says how the tables at the end differ from what they must be. Tried is set where every event was tried
	// exactly once.
	problems(ctx context.Context, committed map[uuid.UUID]time.Time, tried bool) ([]string, error)
}

// newOracle is the oracle of what the program knows under the name of the plan's layout.
func newOracle(pool *pgxpool.Pool, p *plan) (oracle, error) {
	if p.layout == pgstream.LayoutName {
		return &stream{pool: pool, think: p.think}, nil
	}
	shipped, ok := shipped.Find(p.layout)
	if !ok {
		return nil, fmt.Errorf("there is no layout %q", p.layout)
	}
	return &table{pool, shipped.Layout}, nil
}
