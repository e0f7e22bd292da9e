package pgstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/sqlstate"
)

// The steps of a new subscription. Its shards are locked until it is ready, so that no relay
// begins before its cursors are where they should be. Their fence is the first of its
// generation: no relay has known it before.
const (
	// $1 name, $2 namespace, $3 topics, $4 types, $5 tenant, $6 destination, $7 on_dead, $8 owner.
	createSQL = `
WITH made AS (
  INSERT INTO {subscriptions} (name, namespace, topics, types, tenant_id, destination, on_dead, ready)
  VALUES ($1, nullif($2, ''), nullif($3::text[], '{}'), nullif($4::text[], '{}'), $5, nullif($6, ''), $7, false)
  RETURNING name, generation
), cursors AS (
  INSERT INTO {shards} (subscription, shard, owner, fence, locked_until, s1, q1, hi, pos)
  SELECT made.name, shard, $8, made.generation << 32, 'infinity', '1:1:', 0, 0, 0
  FROM made, {settings} AS o, generate_series(0, o.shards - 1) AS shard
  RETURNING shard
)
SELECT generation, (SELECT count(*) FROM cursors) FROM made`

	// skipSQL closes the window that open has opened, unread. $1 name, $2 fence.
	skipSQL = `
UPDATE {shards} SET s1 = s2, q1 = q2, s2 = NULL, q2 = NULL, pos = 0
WHERE subscription = $1 AND fence = $2 AND s2 IS NOT NULL`

	// $1 name, $2 fence, $3 generation.
	readySQL = `
WITH freed AS (UPDATE {shards} SET owner = NULL, locked_until = NULL WHERE subscription = $1 AND fence = $2)
UPDATE {subscriptions} SET ready = true WHERE name = $1 AND generation = $3`
)

// CreateSubscription makes a subscription. If it is interrupted, the subscription may be left HalfMade: drop it and make it
// again.
func (s Stream) CreateSubscription(ctx context.Context, pool *pgxpool.Pool, sub Subscription, start Start) error {
	if err := sub.Validate(); err != nil {
		return err
	}
	sub.OnDead = cmp.Or(sub.OnDead, DeadSkips)
	if err := s.check(ctx, pool, ""); err != nil {
		return err
	}
	var generation int64
	var shards int
	err := pool.QueryRow(ctx, s.names(createSQL), append(sub.columns(), [16]byte(uuid.New()))...).Scan(&generation, &shards)
	if sqlstate.Of(err) == sqlstate.UniqueViolation {
		if _, err := s.FindSubscription(ctx, pool, sub.Name); errors.Is(err, ErrHalfMade) {
			return err
		}
		return fmt.Errorf("outbox: subscription %q: %w", sub.Name, ErrSubscriptionExists)
	}
	if err == nil && start == StartNow {
		err = s.startNow(ctx, pool, sub.Name, generation, shards)
	}
	if err == nil {
		err = s.finish(ctx, pool, sub.Name, generation)
	}
	if err != nil {
		return fmt.Errorf("outbox: make subscription %q: %w", sub.Name, err)
	}
	return nil
}

// columns are a subscription's values as statements take them: its name, filter, destination and
// policy.
func (sub *Subscription) columns() []any {
	var tenant *[16]byte
	if sub.Filter.TenantID != uuid.Nil {
		tenant = (*[16]byte)(&sub.Filter.TenantID)
	}
	return []any{sub.Name, sub.Filter.Namespace, sub.Filter.Topics, sub.Filter.Types, tenant, sub.Destination, sub.OnDead}
}

// startNow opens a window as a relay would, and closes it unread. These are statements of
// their own: the second relies on the first having ended.
func (s Stream) startNow(ctx context.Context, pool *pgxpool.Pool, name string, generation int64, shards int) error {
	fence := generation << 32
	numbers, fences := make([]int16, shards), make([]int64, shards)
	for i := range numbers {
		numbers[i], fences[i] = int16(i), fence
	}
	statements := s.statements(Shape{}, Filter{})
	if _, err := pool.Exec(ctx, statements.refresh, name, numbers, fences); err != nil {
		return err
	}
	const unread = 0 // events of a page
	if _, err := pool.Exec(ctx, statements.open, name, numbers, fences, unread, nil); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, s.names(skipSQL), name, fence)
	return err
}

// finish lets relays begin, unless the subscription was dropped meanwhile.
func (s Stream) finish(ctx context.Context, pool *pgxpool.Pool, name string, generation int64) error {
	tag, err := pool.Exec(ctx, s.names(readySQL), name, generation<<32, generation)
	if err == nil && tag.RowsAffected() == 0 {
		err = errors.New("it was dropped before it was ready")
	}
	return err
}
