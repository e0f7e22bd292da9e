package pgstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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
  coalesce(tenant_id, '00000000-0000-0000-0000-000000000000'), coalesce(destination, ''), on_dead, created_at`

func scanSubscription(row pgx.CollectableRow) (sub Subscription, err error) {
	var tenant [16]byte
	err = row.Scan(&sub.Name, &sub.Filter.Namespace, &sub.Filter.Topics, &sub.Filter.Types, &tenant,
		&sub.Destination, &sub.OnDead, &sub.CreatedAt)
	sub.Filter.TenantID, sub.CreatedAt = uuid.UUID(tenant), sub.CreatedAt.UTC()
	return sub, err
}

// FindSubscription reads one subscription.
func (s Stream) FindSubscription(ctx context.Context, pool *pgxpool.Pool, name string) (*Subscription, error) {
	rows, err := pool.Query(ctx, s.names(`SELECT `+subscriptionColumns+` FROM {subscriptions} WHERE name = $1 AND ready`), name)
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

// Subscriptions lists all subscriptions by name.
func (s Stream) Subscriptions(ctx context.Context, pool *pgxpool.Pool) ([]Subscription, error) {
	return s.subscriptions(ctx, pool)
}

func (s Stream) subscriptions(ctx context.Context, db query) ([]Subscription, error) {
	rows, err := db.Query(ctx, s.names(`SELECT `+subscriptionColumns+` FROM {subscriptions} WHERE ready ORDER BY name`))
	if err != nil {
		return nil, fmt.Errorf("outbox: list the subscriptions: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("outbox: list the subscriptions: %w", err)
	}
	return list, nil
}

// Validate refuses a subscription that cannot be made.
func (sub *Subscription) Validate() error {
	problem := ""
	switch {
	case sub.Name == "":
		problem = "has no name"
	case utf8.RuneCountInString(sub.Name) > maxSubscriptionName:
		problem = fmt.Sprintf("has a name of more than %d characters", maxSubscriptionName)
	case !utf8.ValidString(sub.Name) || strings.ContainsFunc(sub.Name, unicode.IsControl):
		problem = "has a name with characters that cannot be shown"
	case sub.OnDead != "" && sub.OnDead != DeadSkips && sub.OnDead != DeadBlocks:
		problem = fmt.Sprintf("says %q of dead events; choose %q or %q", sub.OnDead, DeadSkips, DeadBlocks)
	}
	if problem != "" {
		return fmt.Errorf("outbox: the subscription %s", problem)
	}
	return nil
}

// maxSubscriptionName is the longest name of a subscription.
const maxSubscriptionName = 100

// The steps of a new subscription. Its shards are locked until it is ready, so that no relay
// begins before its cursors are where they should be.
const (
	// $1 name, $2 namespace, $3 topics, $4 types, $5 tenant, $6 destination, $7 on_dead, $8 owner.
	createSQL = `
WITH made AS (
  INSERT INTO {subscriptions} (name, namespace, topics, types, tenant_id, destination, on_dead, ready)
  VALUES ($1, nullif($2, ''), nullif($3::text[], '{}'), nullif($4::text[], '{}'), $5, nullif($6, ''), $7, false)
  RETURNING name
)
INSERT INTO {shards} (subscription, shard, owner, fence, locked_until, s1, q1, hi, pos)
SELECT made.name, shard, $8, 1, 'infinity', '1:1:', 0, 0, 0
FROM made, {settings} AS o, generate_series(0, o.shards - 1) AS shard`

	// skipSQL closes the window that open has opened, unread.
	skipSQL = `
UPDATE {shards} SET s1 = s2, q1 = q2, s2 = NULL, q2 = NULL, pos = 0
WHERE subscription = $1 AND fence = 1 AND s2 IS NOT NULL`

	readySQL = `
WITH freed AS (UPDATE {shards} SET owner = NULL, locked_until = NULL WHERE subscription = $1 AND fence = 1)
UPDATE {subscriptions} SET ready = true WHERE name = $1`
)

// CreateSubscription makes a subscription. One that was not made to the end, because the
// connection broke, takes nothing; drop it and make it again.
func (s Stream) CreateSubscription(ctx context.Context, pool *pgxpool.Pool, sub Subscription, start Start) error {
	if err := sub.Validate(); err != nil {
		return err
	}
	if sub.OnDead == "" {
		sub.OnDead = DeadSkips
	}
	if err := s.check(ctx, pool); err != nil {
		return err
	}
	var tenant *[16]byte
	if sub.Filter.TenantID != uuid.Nil {
		tenant = (*[16]byte)(&sub.Filter.TenantID)
	}
	tag, err := pool.Exec(ctx, s.names(createSQL), sub.Name, sub.Filter.Namespace, sub.Filter.Topics, sub.Filter.Types,
		tenant, sub.Destination, sub.OnDead, [16]byte(uuid.New()))
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "23505" { // unique_violation
		return fmt.Errorf("outbox: subscription %q: %w", sub.Name, ErrSubscriptionExists)
	}
	if err == nil && start == StartNow {
		err = s.startNow(ctx, pool, sub.Name, int(tag.RowsAffected()))
	}
	if err == nil {
		_, err = pool.Exec(ctx, s.names(readySQL), sub.Name)
	}
	if err != nil {
		return fmt.Errorf("outbox: make subscription %q: %w", sub.Name, err)
	}
	return nil
}

// startNow opens a window as a relay would, and closes it unread. These are statements of
// their own: the second relies on the first having ended.
func (s Stream) startNow(ctx context.Context, pool *pgxpool.Pool, name string, shards int) error {
	numbers, fences := make([]int16, shards), make([]int64, shards)
	for i := range numbers {
		numbers[i], fences[i] = int16(i), 1
	}
	statements := s.statements(Shape{}, Filter{})
	if _, err := pool.Exec(ctx, statements.refresh, name, numbers, fences); err != nil {
		return err
	}
	const unread = 0 // events of a page
	if _, err := pool.Exec(ctx, statements.open, name, numbers, fences, unread); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, s.names(skipSQL), name)
	return err
}

// DropSubscription removes a subscription, its cursors, its parked events, delivered or not, and
// the record of its deliveries. The stream itself, and other subscriptions, are not touched.
func (s Stream) DropSubscription(ctx context.Context, pool *pgxpool.Pool, name string) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.names(`DELETE FROM {subscriptions} WHERE name = $1`), name)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNoSubscription
		}
		// After the cursors: without them nothing is settled any more.
		_, err = tx.Exec(ctx, s.names(`DELETE FROM {deliveries} WHERE subscription = $1`), name)
		return err
	})
	if err != nil {
		return fmt.Errorf("outbox: drop subscription %q: %w", name, err)
	}
	return nil
}
