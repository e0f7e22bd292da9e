package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
)

// Store is where the relay takes events from: the stream of package pgstream, or a table of package pgstore. A store is
// safe for concurrent use.
//
// Store and Batch are not stable, and neither are the optional interfaces StuckBatch, Listener, Leaver, Waiter, Unblocker
// and Idler: they are what our own stores and the relay have agreed on. Use them, but do not implement them.
type Store interface {
	// Claim takes due events, oldest first, so that nobody else has them. An empty batch means
	// that nothing is due.
	Claim(ctx context.Context, request ClaimRequest) (Batch, error)
	// Sweep moves events whose attempts are used up, though nobody settled them, to dead.
	Sweep(ctx context.Context) (int64, error)
	// Purge deletes delivered events older than the retention, in small steps, and nothing else.
	Purge(ctx context.Context, purge Purge) (int64, error)
	// Stats counts what is waiting, held and dead.
	Stats(ctx context.Context) (Stats, error)
	// Traits tells the relay what to expect of the store.
	Traits() Traits
}

// ClaimRequest says what a claim takes.
type ClaimRequest struct {
	// Limit is how many events it takes at most.
	Limit int
	// Closed are events that are to be left, because nothing is sent to their topics now. The
	// stream takes them all the same: their outcome is Stopped.
	Closed ClosedRoutes
	// Except are events that wait although the store does not know it. A store that keeps the order of
	// keys has none.
	Except []uuid.UUID
}

// ClosedRoutes says which events go to topics that are closed: those of Types, and those of
// Topics that are not of OtherTypes.
type ClosedRoutes struct {
	// Topics are the closed topics; an empty one stands for events without a topic.
	Topics []string
	// Types are the event types that the registry sends to closed topics, whatever their own,
	// and OtherTypes those that it sends elsewhere.
	Types, OtherTypes []string
}

// IsZero reports whether no topic is closed.
func (c ClosedRoutes) IsZero() bool { return len(c.Topics) == 0 && len(c.Types) == 0 }

// Batch is what one claim took. Its methods are called one after the other, except for
// Renew, which may run beside a publish.
type Batch interface {
	// Messages are the claimed events, in claimed order.
	Messages() []Message
	// Exhausted are events that were found with their attempts used up, though nobody had
	// settled them. The claim moved them to dead.
	Exhausted() []Message
	// Reclaimed is how many of Messages another claim had held until its lease ran out, where
	// the store can tell.
	Reclaimed() int
	// Renew keeps the batch for another lease. ErrLeaseLost means that none of it is ours
	// any more.
	Renew(ctx context.Context) error
	// Settle writes what became of each message, in order, in one round trip. Events that
	// were no longer ours are left alone and returned. With an error they are those that it is
	// about, and the others are settled; none means all of them. The outcomes must not be kept.
	Settle(ctx context.Context, outcomes []Outcome) (lost []uuid.UUID, err error)
	// Abandon frees what the batch holds of this process, such as a connection, without
	// waiting for the server. It is called last, after a failed Settle too.
	Abandon()
}

// StuckBatch is implemented by batches whose claim can meet events that it cannot move to dead. The relay tells of them, and
// leaves them out of its next claims.
type StuckBatch interface {
	// Stuck are events whose attempts are used up and that the store does not let be dead, with the reason of the first.
	Stuck() ([]uuid.UUID, error)
}

// Listener is implemented by stores that can tell when something was committed by another
// process. It is an accelerator: a relay without it polls.
type Listener interface {
	// Listen calls wake for every notification until ctx ends. ErrNoNotifications means that
	// none arrive.
	Listen(ctx context.Context, wake func()) error
}

// Leaver is implemented by stores that hold more than their batches, such as a share of the
// work. The relay calls it once it has stopped.
type Leaver interface {
	// Leave gives up what the store holds, so that others need not wait for it to expire.
	Leave(ctx context.Context) error
}

// Waiter is implemented by stores that others watch, such as those that share work. While the
// destination takes nothing, the relay claims nothing, and calls it every few seconds.
type Waiter interface {
	// Wait keeps the store known, and notices that what it serves was changed, or removed (ErrGone).
	Wait(ctx context.Context) error
}

// Unblocker is implemented by batches that others may wait for. The relay asks after Settle,
// and claims again at once if it is so.
type Unblocker interface {
	// Unblocked reports whether there is more to claim now that the batch is settled.
	Unblocked() bool
}

// Idler is implemented by stores that can tell whether work is left without counting it.
type Idler interface {
	// Idle reports whether no event is due, held or waiting for a retry, here or elsewhere.
	// What waits for a person, or for a time that was set at emit, does not count.
	Idle(ctx context.Context) (bool, error)
}

// ErrNoNotifications means that a store's notifications do not arrive, as behind a pooler
// in transaction mode.
var ErrNoNotifications = errors.New("notifications do not arrive (a connection pooler in transaction mode?)")

// ErrLeaseLost means that a claim no longer holds its rows: the lease ran out and
// somebody else has them, or they were settled already.
var ErrLeaseLost = errors.New("the lease was lost")

// ErrGone means that what a store serves was removed, such as a subscription that was dropped.
// A relay stops when a claim returns it: trying again would not help.
var ErrGone = errors.New("what the store serves was removed")

// Traits are what the relay has to know of a store.
type Traits struct {
	// Lease is how long a claim lasts without being renewed.
	Lease time.Duration
	// OpenBatches is how many batches can be held at once; zero for any number.
	OpenBatches int
	// Backoff is whether a failed event waits by itself. Where it does not, the relay waits
	// after a round with failures.
	Backoff bool
	// InOrder is whether the store keeps the order of a key. The relay then never has two
	// events of one key under way.
	InOrder bool
	// Exclusive is whether an event is never in two batches of the store at once, not even when
	// its lease ran out meanwhile. Where it is not, the relay sees to it that an event is not
	// published beside itself.
	Exclusive bool
	// Name is what the store is called in logs.
	Name string
}

// OutcomeKind is what became of a claimed event.
type OutcomeKind int

// What can become of a claimed event.
const (
	// Released gives it back as if it had not been tried. With Outcome.Delay a store that keeps the
	// order of keys lets the events of other keys pass it for so long.
	Released OutcomeKind = iota
	// Delivered is the broker's acknowledgement.
	Delivered
	// Failed is an attempt that is counted and repeated after Outcome.Delay.
	Failed
	// Died is the end without delivery.
	Died
	// Stopped gives it back like Released, because its topic is closed. The stream lets others
	// pass it until ClaimRequest.Closed names the topic no longer.
	Stopped
)

// String is the outcome in one word.
func (k OutcomeKind) String() string {
	switch k {
	case Delivered:
		return "delivered"
	case Failed:
		return "failed"
	case Died:
		return "dead"
	case Stopped:
		return "stopped"
	default:
		return "released"
	}
}

// Outcome is what became of one claimed event.
type Outcome struct {
	// Kind is what became of it.
	Kind OutcomeKind
	// Error is the last error, fit for a text column; with Failed, Died and Stopped, and with Released if
	// it has a Delay.
	Error string
	// Delay is the time until the next attempt; with Failed and Released.
	Delay time.Duration
	// Reason says why; with Died.
	Reason Reason
	// Uncounted is set where the publisher never saw the message; with Died.
	Uncounted bool
	// Topic is the closed topic; with Stopped.
	Topic string
}

// given reports whether the event was given back untried.
func (o *Outcome) given() bool { return o.Kind == Released || o.Kind == Stopped }

// Purge says what to delete.
type Purge struct {
	// Retention is how long delivered events are kept.
	Retention time.Duration
	// DeadLetterRetention is how long dead letters are kept; zero for ever.
	DeadLetterRetention time.Duration
	// BatchSize is how many rows one step deletes. Default 1,000.
	BatchSize int
	// DryRun counts only.
	DryRun bool
	// Progress is told the number deleted so far, after each step; nil for nobody.
	Progress func(deleted int64)
}

// WithDefaults fills in what is zero and refuses what makes no sense. Stores call it.
func (p Purge) WithDefaults() (Purge, error) {
	switch {
	case p.Retention <= 0:
		return p, errors.New("outbox: the retention must be positive")
	case p.DeadLetterRetention < 0:
		return p, fmt.Errorf("outbox: the retention of dead letters is %s; it must be positive, or zero to keep them", p.DeadLetterRetention)
	case p.BatchSize < 0 || p.BatchSize > math.MaxInt32:
		return p, fmt.Errorf("outbox: Purge.BatchSize is %d; a step deletes between 1 and %d rows", p.BatchSize, math.MaxInt32)
	}
	if p.BatchSize == 0 {
		p.BatchSize = 1000
	}
	return p, nil
}

// Stats are the numbers of a store. Counts stop at StatsLimit, so that asking stays
// cheap with any backlog.
type Stats struct {
	// Due are the events that could be claimed now.
	Due int64
	// Scheduled are the events whose first attempt is still to come.
	Scheduled int64
	// Retrying are the events that failed and wait for their next attempt.
	Retrying int64
	// Held are the events that a relay holds.
	Held int64
	// Dead are the events that will not be tried again.
	Dead int64
	// Exhausted are the events at their maximum of attempts that are not dead yet.
	Exhausted int64
	// Strays are rows that no state accounts for, such as those of a status that nobody knows, or without a time to be tried
	// at: no relay ever takes them. It is NotCounted where counting would read the whole of a large table.
	Strays int64
	// OldestAge is the age of the oldest event that is neither delivered nor dead.
	OldestAge time.Duration
}

// NotCounted is in place of a number that was too costly to find out.
const NotCounted = -1

// StatsLimit is where the counts of Stats stop.
const StatsLimit = 1_000_000
