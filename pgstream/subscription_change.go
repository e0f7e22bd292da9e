package pgstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/streamsql"
)

// SubscriptionOption adjusts how a subscription is altered or dropped.
type SubscriptionOption struct{ forced bool }

// Forced alters or drops a subscription even if relays that serve it stand in the way.
func Forced() SubscriptionOption { return SubscriptionOption{forced: true} }

func isForced(options []SubscriptionOption) bool {
	return slices.Contains(options, Forced())
}

// lockShardsSQL locks a subscription's shards in the order of their numbers, as everybody does. It
// comes before a lock of the subscription itself: a settle has its shards, and then needs that.
// $1 subscription.
const lockShardsSQL = `SELECT FROM {shards} WHERE subscription = $1 ORDER BY shard FOR UPDATE`

// servedSQL finds a relay that is alive. $1 subscription.
const servedSQL = `SELECT r.host, r.pid FROM {relays} AS r WHERE r.subscription = $1 AND ` + streamsql.Present

// refuseServed returns ErrSubscriptionServed if a relay is found.
func (s Stream) refuseServed(ctx context.Context, tx pgx.Tx, name, found, hint string) error {
	var host string
	var pid int
	err := tx.QueryRow(ctx, s.names(found+` LIMIT 1`), name).Scan(&host, &pid)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w on %s, process %d; %s", ErrSubscriptionServed, host, pid, hint)
}

// DropSubscription removes a subscription with its cursors, its parked events, delivered or not, and the record of its
// deliveries. It removes one that is HalfMade, too. The stream itself and other subscriptions stay as they are. It returns
// ErrSubscriptionServed while a relay is alive, unless Forced: relays of a dropped subscription stop.
func (s Stream) DropSubscription(ctx context.Context, pool *pgxpool.Pool, name string, options ...SubscriptionOption) error {
	forced := isForced(options)
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.names(lockShardsSQL), name); err != nil {
			return err
		}
		// No relay registers itself any more.
		tag, err := tx.Exec(ctx, s.names(`SELECT FROM {subscriptions} WHERE name = $1 FOR UPDATE`), name)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNoSubscription
		}
		if !forced {
			if err := s.refuseServed(ctx, tx, name, servedSQL, "stop it, or force the drop"); err != nil {
				return err
			}
			if err := s.refuseUnrepaired(ctx, tx, name); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, s.names(`DELETE FROM {subscriptions} WHERE name = $1`), name); err != nil {
			return err
		}
		// After the cursors: without them nothing is settled any more.
		if _, err = tx.Exec(ctx, s.names(`DELETE FROM {deliveries} WHERE subscription = $1`), name); err != nil {
			return err
		}
		return s.wake(ctx, tx, aboutChanged)
	})
	if err != nil {
		return fmt.Errorf("outbox: drop subscription %q: %w", name, err)
	}
	return nil
}

// refuseUnrepaired keeps a subscription that waits for a repair: what it has not delivered would be lost to it
// before anybody has seen how much that is. One that lacks cursors can be dropped.
func (s Stream) refuseUnrepaired(ctx context.Context, tx pgx.Tx, name string) error {
	h, err := s.look(ctx, tx)
	if err != nil {
		return err
	}
	if err := h.refusal(name); errors.Is(err, ErrRestored) && !slices.Contains(h.partial, name) {
		return fmt.Errorf("%w; or force the drop, and what it has not delivered is lost to it", err)
	}
	return nil
}

const (
	// alterSQL draws a new generation, by which relays know that there is something to read again.
	// The shards stay as they are: a page that is out can be settled. $1 name, $2 namespace,
	// $3 topics, $4 types, $5 tenant, $6 destination, $7 on_dead.
	alterSQL = `
UPDATE {subscriptions} SET namespace = nullif($2, ''), topics = nullif($3::text[], '{}'), types = nullif($4::text[], '{}'),
  tenant_id = $5, destination = nullif($6, ''), on_dead = $7, generation = DEFAULT
WHERE name = $1
RETURNING generation`

	// freeDeadSQL lets go of the keys that dead events block. $1 subscription.
	freeDeadSQL = `
WITH freed AS (
  UPDATE {parked} SET gates = false WHERE subscription = $1 AND state = 'dead' AND gates RETURNING shard
)
UPDATE {shards} SET parked_changes = parked_changes + 1 WHERE subscription = $1 AND shard IN (SELECT shard FROM freed)`
)

// AlterSubscription changes the filter, the destination or the policy of a subscription: it calls change with the present
// definition, and returns the new one. The cursors stay: events behind them are not read again, and what was parked under
// the old definition stays parked. Running relays adopt the new definition within one heartbeat, which is ten seconds or a
// third of the lease, after the page that is out.
//
// When OnDead changes to DeadSkips, keys that wait behind dead events go on. When it changes to
// DeadBlocks, events that are dead already block nothing: their keys have gone on.
//
// Relays of earlier programs, which do not know generations, would go on under the old definition: while one is alive,
// AlterSubscription returns ErrSubscriptionServed, unless Forced.
func (s Stream) AlterSubscription(
	ctx context.Context, pool *pgxpool.Pool, name string, change func(*Subscription), options ...SubscriptionOption,
) (*Subscription, error) {
	forced := isForced(options)
	var altered *Subscription
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.names(lockShardsSQL), name); err != nil {
			return err
		}
		is, err := s.findSubscription(ctx, tx, name, "FOR NO KEY UPDATE")
		if err != nil {
			return err
		}
		wanted := *is
		wanted.Filter.Topics, wanted.Filter.Types = slices.Clone(is.Filter.Topics), slices.Clone(is.Filter.Types)
		change(&wanted)
		wanted.Name, wanted.CreatedAt, wanted.Generation, wanted.HalfMade = is.Name, is.CreatedAt, is.Generation, false
		wanted.OnDead = cmp.Or(wanted.OnDead, DeadSkips)
		altered = &wanted
		if err := wanted.validatePolicy(); err != nil {
			return err
		}
		if len(is.changes(&wanted)) == 0 {
			return nil
		}
		if !forced {
			const unaware = servedSQL + ` AND generation IS NULL`
			if err := s.refuseServed(ctx, tx, name, unaware, "it is of an earlier program, which does not notice the change: "+
				"stop it or upgrade it, or force the change and restart it"); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, s.names(alterSQL), wanted.columns()...).Scan(&wanted.Generation); err != nil {
			return err
		}
		if is.OnDead == DeadBlocks && wanted.OnDead == DeadSkips {
			if err := s.freeDead(ctx, tx, name); err != nil {
				return err
			}
		}
		return s.wake(ctx, tx, aboutChanged)
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: alter subscription %q: %w", name, err)
	}
	return altered, nil
}

// freeDead lets the keys go on that dead events block, and tells the relays.
func (s Stream) freeDead(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, s.names(freeDeadSQL), name); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.names(promoteAllSQL), name, false); err != nil {
		return err
	}
	return s.wake(ctx, tx, aboutParked)
}

// changes names what differs in the definition of a subscription.
func (sub *Subscription) changes(other *Subscription) (list []string) {
	add := func(differs bool, what string) {
		if differs {
			list = append(list, what)
		}
	}
	add(sub.Filter.Namespace != other.Filter.Namespace, "namespace")
	add(!slices.Equal(sub.Filter.Topics, other.Filter.Topics), "topics")
	add(!slices.Equal(sub.Filter.Types, other.Filter.Types), "types")
	add(sub.Filter.TenantID != other.Filter.TenantID, "tenant")
	add(sub.Destination != other.Destination, "destination")
	add(sub.OnDead != other.OnDead, "on-dead")
	return list
}
