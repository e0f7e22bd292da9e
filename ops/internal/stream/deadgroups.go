package stream

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// DeadGroups groups the newest dead events.
func (s *Subscription) DeadGroups(ctx context.Context) (groups *view.DeadGroups, err error) {
	err = query.ByIndex(ctx, s.pool, func(tx pgx.Tx) error {
		// Take the same number of each shard: the order across shards matters little.
		dead := streamsql.Names(s.stream.Schema, fmt.Sprintf(`
SELECT p.type, ''::text AS topic, p.last_error AS error, coalesce(p.reason, '') AS reason, p.created_at AS created, p.id
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT * FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = c.shard AND p.state = 'dead' ORDER BY p.seq DESC LIMIT %d
) AS p
WHERE c.subscription = $1 LIMIT %d`, query.GroupLimit/8, query.GroupLimit))
		more := streamsql.Names(s.stream.Schema, fmt.Sprintf(`
SELECT EXISTS (SELECT FROM {shards} AS c WHERE c.subscription = $1 AND (
  SELECT true FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = c.shard AND p.state = 'dead' ORDER BY p.seq DESC OFFSET %d LIMIT 1))`,
			query.GroupLimit/8))
		groups, err = query.DeadGroups(ctx, tx, dead, more, query.Args{s.name})
		return err
	})
	return groups, err
}
