package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
)

// Store is where the relay claims events: the stream of package pgstream, or a table of package pgstore. A store is
// safe for concurrent use.
//
// Store, Batch and the optional interfaces StuckBatch, Listener, Leaver, Waiter, Unblocker and Idler are not
// stable: they are an agreement between our own stores and the relay. Use them, but do not implement them.
type Store interface {
	// Claim takes due events exclusively, oldest first. An empty batch means that nothing is due.
	Claim(ctx context.Context, request ClaimRequest) (Batch, error)
	// Sweep moves events to dead that have used up their attempts but were never settled.
	Sweep(ctx context.Context) (int64, error)
	// Purge deletes only delivered events older than the retention, in small steps.
	Purge(ctx context.Context, purge Purge) (int64, error)
	// Stats counts the events that wait, are held, or are dead.
	Stats(ctx context.Context) (Stats, error)
	// Traits describes the store to the relay.
	Traits() Traits
}

// ClaimRequest says which events a claim takes.
type ClaimRequest struct {
	// Limit is the maximum number of events.
	Limit int
	// Closed names events to leave out because their topics are closed. The stream claims them all the same; the
	// relay settles them as Stopped.
	Closed ClosedRoutes
	// Except are events to leave out because the relay makes them wait, although their rows do not say so. It is
	// empty for a store that keeps the order of keys.
	Except []uuid.UUID
}

// ClosedRoutes names the events that go to closed topics: events of Types, and events of Topics whose type is not
// in OtherTypes.
type ClosedRoutes struct {
	// Topics are the closed topics; the empty string stands for events without a topic.
	Topics []string
	// Types are the event types that the registry sends to closed topics, whatever topic the event has. OtherTypes
	// are those it sends to other topics.
	Types, OtherTypes []string
}

// IsZero reports whether no topic is closed.
func (c ClosedRoutes) IsZero() bool { return len(c.Topics) == 0 && len(c.Types) == 0 }

// Batch holds the events of one claim. Its methods are called one after the other, except for Renew, which may run
// during a publish.
type Batch interface {
	// Messages returns the claimed events, in claimed order.
	Messages() []Message
	// Exhausted returns events that had used up their attempts but were never settled. The claim moved them to
	// dead.
	Exhausted() []Message
	// Reclaimed returns how many of Messages were held by another claim until its lease ran out, if the store can
	// tell.
	Reclaimed() int
	// Renew extends the batch by another lease. ErrLeaseLost means that all of it was lost.
	Renew(ctx context.Context) error
	// Settle writes the outcome of each message, in order, in one round trip. It leaves events alone whose lease
	// was lost, and returns them as lost. If it fails for some events only, lost names those, and the others are
	// settled; an error with no lost events concerns all of them. Settle must not keep outcomes.
	Settle(ctx context.Context, outcomes []Outcome) (lost []uuid.UUID, err error)
	// Abandon frees what the batch holds in this process, such as a connection, without waiting for the server. It
	// is called last, even after a failed Settle.
	Abandon()
}

// StuckBatch is implemented by batches whose claim can find events that it cannot move to dead. The relay reports
// them and leaves them out of its next claims.
type StuckBatch interface {
	// Stuck returns the events that have used up their attempts but cannot be moved to dead, and the error of the
	// first.
	Stuck() ([]uuid.UUID, error)
}

// Listener is implemented by stores that notice commits of other processes. It only makes the relay faster: without
// it, the relay polls.
type Listener interface {
	// Listen calls wake for every notification until ctx ends. It returns ErrNoNotifications if none arrive.
	Listen(ctx context.Context, wake func()) error
}

// Leaver is implemented by stores that hold more than their batches, such as a share of the work. The relay calls
// it after it has stopped.
type Leaver interface {
	// Leave releases what the store holds, so that others need not wait for it to expire.
	Leave(ctx context.Context) error
}

// Waiter is implemented by stores that others watch, such as those that share work. While the destination is
// unavailable, the relay claims nothing and calls Wait every few seconds.
type Waiter interface {
	// Wait shows others that the store is alive, and notices changes to what it serves. It returns ErrGone if that
	// was removed.
	Wait(ctx context.Context) error
}

// Unblocker is implemented by batches that other events may wait for. The relay calls it after Settle, and claims
// again at once if it returns true.
type Unblocker interface {
	// Unblocked reports whether settling the batch made more events due.
	Unblocked() bool
}

// Idler is implemented by stores that can tell whether work is left without counting it.
type Idler interface {
	// Idle reports whether no event is due, held or waiting for a retry, here or elsewhere. Events that wait for a
	// person, or for their NotBefore, do not count.
	Idle(ctx context.Context) (bool, error)
}

// ErrNoNotifications means that no notifications arrive, as behind a pooler in transaction mode.
var ErrNoNotifications = errors.New("notifications do not arrive (a connection pooler in transaction mode?)")

// ErrLeaseLost means that a claim no longer holds its rows: its lease ran out and another claim took them, or they
// are already settled.
var ErrLeaseLost = errors.New("the lease was lost")

// ErrGone means that what the store serves was removed, such as a dropped subscription. A relay stops when a claim
// returns it, because a retry would not help.
var ErrGone = errors.New("what the store serves was removed")

// Traits are what the relay needs to know about a store.
type Traits struct {
	// Lease is how long a claim lasts without being renewed.
	Lease time.Duration
	// OpenBatches is how many batches can be held at once; zero for any number.
	OpenBatches int
	// Backoff is whether the store delays failed events itself. If not, the relay waits after a round with
	// failures.
	Backoff bool
	// InOrder is whether the store keeps the order of a key. The relay then never publishes two events of one key
	// at once.
	InOrder bool
	// Exclusive is whether an event is never in two batches of the store at once, not even after its lease ran out.
	// If not, the relay itself makes sure that an event is not published twice at once.
	Exclusive bool
	// Name is the store's name in logs.
	Name string
}

// OutcomeKind is the kind of an Outcome.
type OutcomeKind int

// The kinds of outcomes.
const (
	// Released gives the event back as if it had not been tried. With Outcome.Delay, a store that keeps the order
	// of keys lets events of other keys pass it for that long.
	Released OutcomeKind = iota
	// Delivered means that the broker acknowledged the event.
	Delivered
	// Failed counts the attempt; the event is retried after Outcome.Delay.
	Failed
	// Died means that the event is dead.
	Died
	// Stopped gives the event back like Released, because its topic is closed. The stream lets others pass it until
	// ClaimRequest.Closed no longer names the topic.
	Stopped
)

// String returns the kind in one word.
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

// Outcome is the result of one claimed event.
type Outcome struct {
	// Kind is the kind of outcome; it decides which other fields are set.
	Kind OutcomeKind
	// Error is the last error, ready for a text column. It is set with Failed, Died and Stopped, and with Released
	// if there is a Delay.
	Error string
	// Delay is the time until the next attempt. It is set with Failed and Released.
	Delay time.Duration
	// Reason says why the event is dead. It is set with Died.
	Reason Reason
	// Uncounted means that the publisher never saw the message. It is set with Died.
	Uncounted bool
	// Topic is the closed topic. It is set with Stopped.
	Topic string
}

// given reports whether the event was given back as untried.
func (o *Outcome) given() bool { return o.Kind == Released || o.Kind == Stopped }

// Purge says what Store.Purge deletes.
type Purge struct {
	// Retention is how long delivered events are kept.
	Retention time.Duration
	// DeadLetterRetention is how long dead letters are kept; zero to keep them forever.
	DeadLetterRetention time.Duration
	// BatchSize is how many rows one step deletes. Default 1,000.
	BatchSize int
	// DryRun counts the events and deletes nothing.
	DryRun bool
	// Progress, if not nil, is called after each step with the number deleted so far.
	Progress func(deleted int64)
}

// WithDefaults fills in defaults and rejects invalid values. Stores call it.
func (p Purge) WithDefaults() (Purge, error) {
	switch {
	case p.Retention <= 0:
		return p, errors.New("outbox: the retention must be positive")
	case p.DeadLetterRetention < 0:
		return p, fmt.Errorf("outbox: the retention of dead letters is %s; it must be positive, or zero to keep them", p.DeadLetterRetention)
	case p.BatchSize < 0 || p.BatchSize > math.MaxInt32:
		return p, fmt.Errorf("outbox: Purge.BatchSize is %d; a step deletes between 1 and %d rows", p.BatchSize, math.MaxInt32)
	}
	p.BatchSize = cmp.Or(p.BatchSize, 1000)
	return p, nil
}

// Stats counts the events of a store by state. Counts stop at StatsLimit, which keeps them cheap with any backlog.
type Stats struct {
	// Due is how many events could be claimed now.
	Due int64
	// Scheduled is how many events have their first attempt in the future.
	Scheduled int64
	// Retrying is how many events failed and wait for their next attempt.
	Retrying int64
	// Held is how many events a relay holds.
	Held int64
	// Dead is how many events are dead.
	Dead int64
	// Exhausted is how many events have used up their attempts and are not dead yet.
	Exhausted int64
	// Strays is how many rows are in no known state, such as an unknown status or a missing due time. No relay ever
	// claims them. It is NotCounted where counting would read the whole of a large table.
	Strays int64
	// OldestAge is the age of the oldest event that is neither delivered nor dead.
	OldestAge time.Duration
}

// NotCounted replaces a count that was too expensive.
const NotCounted = -1

// StatsLimit is the highest count that Stats reports.
const StatsLimit = 1_000_000
