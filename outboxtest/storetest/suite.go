// Package storetest is the conformance suite of stores: every outbox.Store has to pass
// it, steered by what it can do.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Features says what a store can do, and how it counts.
type Features struct {
	// CountsOnClaim is set where a claim counts the attempt.
	CountsOnClaim bool
	// Expires is set where a claim ends by time, so that a stopped worker loses it; a store
	// without it holds rows only as long as its connection lives.
	Expires bool
	// Backoff is set where a failed event waits by itself.
	Backoff bool
	// DeliveredIsKept is set where a delivered event stays until it is purged.
	DeliveredIsKept bool
	// InOrder is set where batches are settled one after the other, each as a whole: the
	// next comes only then, and what follows a released event waits with it.
	InOrder bool
	// KeepsShare is set where a store has a share of the work, not only batches: another one
	// gets it when its lease ends.
	KeepsShare bool
}

// Harness connects the suite to one store on a fresh database.
type Harness interface {
	// Open opens another store on the same database.
	Open(t *testing.T, options Options) outbox.Store
	// Emit commits n events, oldest first, and returns their ids in order.
	Emit(t *testing.T, n int) []uuid.UUID
	// State is what the database says of an event.
	State(t *testing.T, id uuid.UUID) State
	// Expire ends every lease, as time would.
	Expire(t *testing.T)
	// Age makes every event older by some time, as time would.
	Age(t *testing.T, by time.Duration)
	// Retry brings dead events back by hand.
	Retry(t *testing.T, store outbox.Store, ids ...uuid.UUID) []uuid.UUID
}

// RowMaximum is a Harness of a store whose events may have a maximum of attempts of their own.
type RowMaximum interface {
	// HasMaximum is whether the events of Emit have one. It is higher than any that a test asks of a store.
	HasMaximum() bool
	// LowerMaximum changes that of every event.
	LowerMaximum(t *testing.T, to int)
}

// Options are what a test asks of a store.
type Options struct {
	// Lease and MaxAttempts are the store's own defaults when zero.
	Lease       time.Duration
	MaxAttempts int
	// WorkerID makes two stores the same worker.
	WorkerID uuid.UUID
}

// State is what the database says of an event.
type State struct {
	// Status is one of the words below; empty if the event is gone.
	Status Status
	// Attempts is the number of attempts counted.
	Attempts int
	// LastError is the error kept with it.
	LastError string
	// Reason is why it is dead, where the store keeps that.
	Reason string
	// DueIn is the time until the next attempt, by the database's clock; zero or less when due.
	DueIn time.Duration
}

// Status is where an event stands.
type Status string

// Where an event can stand.
const (
	Pending   Status = "pending"
	Held      Status = "held"
	Delivered Status = "delivered"
	Dead      Status = "dead"
)

// Run runs the suite. open makes a harness on a fresh database.
func Run(t *testing.T, features Features, open func(t *testing.T) Harness) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *bench){
		"an empty store gives an empty batch":                  testEmpty,
		"events are claimed oldest first, each once":           testOrder,
		"two stores never hold the same event":                 testExclusive,
		"a row that commits late is not skipped":               testLateCommit,
		"delivered":                                            testDelivered,
		"failed: counted, kept, and due again after its delay": testFailed,
		"dead":                                   testDead,
		"released: as if it had not been tried":  testReleased,
		"all outcomes in one batch":              testMixed,
		"attempts are 1-based and rise":          testAttempts,
		"a claim that ended is refused":          testLost,
		"a worker's own old claim is refused":    testLostToItself,
		"a renewed claim lasts":                  testRenew,
		"a worker that died on the last attempt": testDiedOnLastAttempt,
		"attempts used up by a lower maximum":    testLowerMaximum,
		"an abandoned claim comes back":          testAbandon,
		"a dead event is retried by hand":        testRetryDead,
		"only old delivered events are purged":   testPurge,
		"stats":                                  testStats,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &bench{T: t, Harness: open(t), features: features})
		})
	}
}

// bench is one test on one fresh database.
type bench struct {
	*testing.T
	Harness
	features Features
}

const patience = 30 * time.Second

func (b *bench) open(options Options) outbox.Store {
	b.Helper()
	if options.MaxAttempts == 0 {
		options.MaxAttempts = 3
	}
	return b.Open(b.T, options)
}

// takeOver opens a store that gets whatever others had.
func (b *bench) takeOver(options Options) outbox.Store {
	b.Helper()
	if b.features.KeepsShare {
		b.Expire(b.T)
	}
	return b.open(options)
}

// claim claims up to n events and gives the batch up at the end of the test.
func (b *bench) claim(store outbox.Store, n int) outbox.Batch {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	batch, err := store.Claim(ctx, outbox.ClaimRequest{Limit: n})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(batch.Abandon)
	return batch
}

// claimIDs claims and fails unless exactly these come, in this order.
func (b *bench) claimIDs(store outbox.Store, n int, want ...uuid.UUID) outbox.Batch {
	b.Helper()
	batch := b.claim(store, n)
	got := ids(batch)
	if !slices.Equal(got, want) {
		b.Fatalf("claimed %v, want %v", got, want)
	}
	return batch
}

func ids(batch outbox.Batch) []uuid.UUID {
	var list []uuid.UUID
	for _, message := range batch.Messages() {
		list = append(list, message.ID)
	}
	return list
}

// settle settles with the same outcome for all, and fails if any was lost.
func (b *bench) settle(batch outbox.Batch, outcome outbox.Outcome) {
	b.Helper()
	if lost := b.trySettle(batch, outcome); len(lost) > 0 {
		b.Fatalf("lost %v", lost)
	}
}

func (b *bench) trySettle(batch outbox.Batch, outcome outbox.Outcome) []uuid.UUID {
	b.Helper()
	outcomes := make([]outbox.Outcome, len(batch.Messages()))
	for i := range outcomes {
		outcomes[i] = outcome
	}
	lost, err := batch.Settle(b.Context(), outcomes)
	if err != nil {
		b.Fatal(err)
	}
	batch.Abandon()
	return lost
}

// want fails unless the event stands so.
func (b *bench) want(id uuid.UUID, status Status, attempts int) State {
	b.Helper()
	state := b.State(b.T, id)
	if state.Status != status || state.Attempts != attempts {
		b.Fatalf("event %s is %q with %d attempts, want %q with %d", id, state.Status, state.Attempts, status, attempts)
	}
	return state
}

// outcomes of tests.
var (
	delivered = outbox.Outcome{Kind: outbox.Delivered}
	released  = outbox.Outcome{Kind: outbox.Released}
	died      = outbox.Outcome{Kind: outbox.Died, Error: "no use", Reason: outbox.ReasonTerminal}
	failed    = outbox.Outcome{Kind: outbox.Failed, Error: "not now"}
)
