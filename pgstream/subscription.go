package pgstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlstate"
)

// OnDead is what a dead event does to the later events of its key.
type OnDead string

// What a dead event does to its key.
const (
	// DeadSkips lets the key go on.
	DeadSkips OnDead = "skip"
	// DeadBlocks makes the key wait until somebody retries the event, or drops it.
	DeadBlocks OnDead = "block"
)

// Subscription is an independent reader of the stream, with cursors of its own.
type Subscription struct {
	// Name identifies it; see CheckSubscriptionName.
	Name string `json:"name"`
	// Filter selects the events that it takes.
	Filter Filter `json:"filter"`
	// Destination is the URL that its relay publishes to; empty if the relay's own settings say.
	Destination string `json:"destination,omitempty"`
	// OnDead is what a dead event does to its key. Default DeadSkips.
	OnDead OnDead `json:"onDead"`
	// CreatedAt is when it was made.
	CreatedAt time.Time `json:"createdAt"`
	// Generation changes whenever the definition does, and when the subscription is dropped and made again.
	Generation int64 `json:"generation"`
	// HalfMade is set if making it was interrupted, or is under way. It has no relay and holds no events; drop it.
	HalfMade bool `json:"halfMade,omitempty"`
}

// ErrNoSubscription means that the subscription does not exist.
var ErrNoSubscription = errors.New("there is no such subscription")

// ErrSubscriptionExists means that there is a subscription of that name.
var ErrSubscriptionExists = errors.New("the subscription exists already")

// ErrHalfMade means that making the subscription was interrupted. It takes nothing and keeps nothing.
var ErrHalfMade = errors.New("the subscription was not made to the end; drop it with outbox subscriptions drop, and make it again")

// ErrSubscriptionServed means that a relay of the subscription is alive.
var ErrSubscriptionServed = errors.New("the subscription is served by a relay")

// droppedError is the error of a store whose subscription was dropped. The relay stops.
type droppedError struct{ name string }

func (e *droppedError) Error() string {
	return fmt.Sprintf("outbox: subscription %q was dropped", e.name)
}
func (e *droppedError) Is(target error) bool {
	return target == outbox.ErrGone || target == ErrNoSubscription
}

// isDropped reports whether a statement failed because a relay cannot be listed for a subscription that is no more.
func isDropped(err error) bool { return sqlstate.Of(err) == sqlstate.ForeignKeyViolation }

// Start is where a new subscription begins.
type Start int

// Where a new subscription begins.
const (
	// StartOldest begins at the oldest event that is kept.
	StartOldest Start = iota
	// StartNow takes what is committed from now on.
	StartNow
)

const subscriptionColumns = `name, coalesce(namespace, ''), coalesce(topics, '{}'), coalesce(types, '{}'),
  coalesce(tenant_id, '00000000-0000-0000-0000-000000000000'), coalesce(destination, ''), on_dead, created_at, generation, NOT ready`

func scanSubscription(row pgx.CollectableRow) (sub Subscription, err error) {
	var tenant [16]byte
	err = row.Scan(&sub.Name, &sub.Filter.Namespace, &sub.Filter.Topics, &sub.Filter.Types, &tenant,
		&sub.Destination, &sub.OnDead, &sub.CreatedAt, &sub.Generation, &sub.HalfMade)
	sub.Filter.TenantID, sub.CreatedAt = uuid.UUID(tenant), sub.CreatedAt.UTC()
	return sub, err
}

// FindSubscription reads one subscription. It returns ErrNoSubscription if there is none, and ErrHalfMade if making it was
// interrupted.
func (s Stream) FindSubscription(ctx context.Context, pool *pgxpool.Pool, name string) (*Subscription, error) {
	return s.findSubscription(ctx, pool, name, "")
}

// findSubscription locks the subscription's row, too, if locking says so.
func (s Stream) findSubscription(ctx context.Context, db Querier, name, locking string) (*Subscription, error) {
	rows, _ := db.Query(ctx, s.names(`SELECT `+subscriptionColumns+` FROM {subscriptions} WHERE name = $1 `+locking), name)
	sub, err := pgx.CollectExactlyOneRow(rows, scanSubscription)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("outbox: subscription %q: %w; make it with outbox subscriptions create", name, ErrNoSubscription)
	case err != nil:
		return nil, fmt.Errorf("outbox: read subscription %q: %w", name, err)
	case sub.HalfMade:
		return nil, fmt.Errorf("outbox: subscription %q: %w", name, ErrHalfMade)
	}
	return &sub, nil
}

// Subscriptions lists all subscriptions by name, those that are HalfMade last.
func (s Stream) Subscriptions(ctx context.Context, db Querier) ([]Subscription, error) {
	rows, _ := db.Query(ctx, s.names(`SELECT `+subscriptionColumns+` FROM {subscriptions} ORDER BY ready DESC, name`))
	list, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("outbox: list the subscriptions: %w", err)
	}
	return list, nil
}

// Validate refuses a subscription that cannot be made.
func (sub *Subscription) Validate() error {
	if err := CheckSubscriptionName(sub.Name); err != nil {
		return err
	}
	return sub.validatePolicy()
}

func (sub *Subscription) validatePolicy() error {
	if sub.OnDead != "" && sub.OnDead != DeadSkips && sub.OnDead != DeadBlocks {
		return fmt.Errorf("outbox: the subscription says %q of dead events; choose %q or %q", sub.OnDead, DeadSkips, DeadBlocks)
	}
	return nil
}
