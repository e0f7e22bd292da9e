package pgstream

// What a server's clock leaves behind when it is set back: times that are further ahead than
// anybody would write them now.

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox/internal/streamsql"
)

const (
	// farShards and farRelays are the leases of others that end too far ahead. A subscription that
	// is being made has its shards locked for ever. $1 subscription, $2 worker.
	farShards = `
  FROM {shards} AS c LEFT JOIN {relays} AS r ON r.subscription = c.subscription AND r.worker = c.owner
  WHERE c.subscription = $1 AND c.owner <> $2 AND isfinite(c.locked_until) AND c.locked_until > ` + streamsql.TooFar
	farRelays = `
  FROM {relays} AS r WHERE r.subscription = $1 AND r.worker <> $2 AND r.alive_until > ` + streamsql.TooFar

	// shortenSQL lets the leases of others end no further ahead than one that begins now. Whoever is
	// alive renews its own; what a dead one left is free after its length. Taken at once, a shard
	// could have two owners that publish, if both are alive. What is locked is being renewed.
	shortenSQL = `
WITH far AS MATERIALIZED (
  SELECT c.shard, ` + streamsql.LeaseOf + ` AS seconds` + farShards + `
  ORDER BY c.shard
  FOR UPDATE OF c SKIP LOCKED
), shards AS (
  UPDATE {shards} AS c SET locked_until = now() + make_interval(secs => far.seconds)
  FROM far WHERE c.subscription = $1 AND c.shard = far.shard
), listed AS MATERIALIZED (
  SELECT r.worker` + farRelays + `
  FOR UPDATE SKIP LOCKED
)
UPDATE {relays} AS r SET alive_until = now() + make_interval(secs => ` + streamsql.LeaseOf + `)
FROM listed WHERE r.subscription = $1 AND r.worker = listed.worker`
)

// shortenLeases deals with leases of others that end too far ahead.
func (s *Store) shortenLeases(ctx context.Context) error {
	if _, err := s.own.Exec(ctx, s.sql.shorten, s.config.Subscription, [16]byte(s.config.WorkerID)); err != nil {
		return fmt.Errorf("outbox: shorten leases from before the server's clock was set back: %w", err)
	}
	s.log.Warn("the server's clock was set back: leases ended too far ahead, and were shortened to their own length",
		"subscription", s.config.Subscription)
	return nil
}
