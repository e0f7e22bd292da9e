package pgstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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
	// Name identifies it; at most 100 characters.
	Name string `json:"name"`
	// Filter is what it takes.
	Filter Filter `json:"filter"`
	// Destination is where its relay publishes, as a URL; empty if the relay is told otherwise.
	Destination string `json:"destination,omitempty"`
	// OnDead is what a dead event does to its key. Default DeadSkips.
	OnDead OnDead `json:"onDead"`
	// CreatedAt is when it was made.
	CreatedAt time.Time `json:"createdAt"`
}

// ErrNoSubscription means that a subscription is not there.
var ErrNoSubscription = errors.New("there is no such subscription")

// ErrSubscriptionExists means that a subscription of that name is there already.
var ErrSubscriptionExists = errors.New("the subscription exists already")

const subscriptionColumns = `name, coalesce(namespace, ''), coalesce(topics, '{}'), coalesce(types, '{}'),
  coalesce(tenant_id, '00000000-0000-0000-0000-000000000000'), coalesce(destination, ''), on_dead, created_at`

func scanSubscription(row pgx.CollectableRow) (sub Subscription, err error) {
	var tenant [16]byte
	err = row.Scan(&sub.Name, &sub.Filter.Namespace, &sub.Filter.Topics, &sub.Filter.Types, &tenant,
		&sub.Destination, &sub.OnDead, &sub.CreatedAt)
	sub.Filter.TenantID, sub.CreatedAt = uuid.UUID(tenant), sub.CreatedAt.UTC()
	return sub, err
}

// FindSubscription reads one subscription.
func (s Stream) FindSubscription(ctx context.Context, db query, name string) (*Subscription, error) {
	rows, err := db.Query(ctx, s.names(`SELECT `+subscriptionColumns+` FROM {subscriptions} WHERE name = $1`), name)
	if err != nil {
		return nil, fmt.Errorf("outbox: read subscription %q: %w", name, err)
	}
	sub, err := pgx.CollectExactlyOneRow(rows, scanSubscription)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("outbox: subscription %q: %w; make it with outbox subscriptions create", name, ErrNoSubscription)
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: read subscription %q: %w", name, err)
	}
	return &sub, nil
}
