package ops

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// maxGroups is how many groups of dead events are listed.
const maxGroups = 100

// deadGroups reads groups. dead are dead events, at most scanLimit, with the columns type,
// topic, error, reason, created and id.
func deadGroups(ctx context.Context, tx pgx.Tx, dead string, args arguments) (*DeadGroups, error) {
	sql := fmt.Sprintf(`
WITH dead AS MATERIALIZED (%s)
SELECT type, topic, %s AS normal, reason, count(*), min(created), max(created), (array_agg(id ORDER BY created DESC))[1]::text,
  (SELECT count(*) FROM dead)
FROM dead
GROUP BY type, topic, normal, reason
ORDER BY count(*) DESC, max(created) DESC
LIMIT %d`, dead, normalSQL("error"), maxGroups+1)
	rows, err := tx.Query(ctx, sql, args.all()...)
	if err != nil {
		return nil, err
	}
	groups := &DeadGroups{}
	groups.Groups, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g DeadGroup, err error) {
		err = row.Scan(&g.Type, &g.Topic, &g.Error, &g.Reason, &g.Count, &g.Oldest, &g.Newest, &g.Example, &groups.Events)
		g.Oldest, g.Newest = g.Oldest.UTC(), g.Newest.UTC()
		return g, err
	})
	if err != nil {
		return nil, err
	}
	groups.Cut = groups.Events >= scanLimit || len(groups.Groups) > maxGroups
	groups.Groups = groups.Groups[:min(len(groups.Groups), maxGroups)]
	return groups, nil
}

// DeadGroups groups the newest dead events of the table.
func (t *table) DeadGroups(ctx context.Context) (groups *DeadGroups, err error) {
	err = byIndex(ctx, t.pool, func(tx pgx.Tx) error {
		w, err := t.choose(ctx, tx, &Filter{State: StateDead}, nil)
		if err != nil {
			return err
		}
		c := &t.layout.Columns
		const text = "coalesce(%s::text, '')"
		topic := "''"
		if c.Type.IsZero() {
			topic = orElse(c.Topic, text, "''")
		}
		var args arguments
		dead := fmt.Sprintf("SELECT %s AS type, %s AS topic, %s AS error, t.outbox_reason AS reason, %s AS created, %s AS id FROM (\n%s\n) AS t WHERE %s",
			orElse(c.Type, text, "''"), topic, orElse(c.LastError, text, "''"), col(c.CreatedAt), col(c.ID),
			t.rows(w, "", false, nil, scanLimit, &args), t.is.Dead)
		groups, err = deadGroups(ctx, tx, dead, args)
		return err
	})
	return groups, t.wrap("group the dead events", err)
}

// DeadGroups groups the newest dead events of the subscription.
func (s *subscription) DeadGroups(ctx context.Context) (groups *DeadGroups, err error) {
	err = byIndex(ctx, s.pool, func(tx pgx.Tx) error {
		// As many of each shard: the order of the whole matters little.
		dead := s.stream.SQL(fmt.Sprintf(`
SELECT p.type, ''::text AS topic, p.last_error AS error, coalesce(p.reason, '') AS reason, p.created_at AS created, p.id
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT * FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = c.shard AND p.state = 'dead' ORDER BY p.seq DESC LIMIT %d
) AS p
WHERE c.subscription = $1 LIMIT %d`, scanLimit/8, scanLimit))
		groups, err = deadGroups(ctx, tx, dead, arguments{s.name})
		return err
	})
	return groups, s.wrap("group the dead events", err)
}
