package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxGroups is how many groups of dead events are listed.
const maxGroups = 100

// deadGroups reads groups. dead selects dead events, at most groupLimit, with the columns type,
// topic, error, reason, created and id. They are grouped here: the database takes an error apart
// ten times as slowly. more asks whether there are dead events that dead leaves out, with the same
// arguments.
func deadGroups(ctx context.Context, tx pgx.Tx, dead, more string, args arguments) (*DeadGroups, error) {
	sql := fmt.Sprintf(`SELECT type, topic, left(coalesce(error, ''), %d), reason, created, id::text FROM (%s) AS dead`, normalLength, dead)
	rows, err := tx.Query(ctx, sql, args.all()...)
	if err != nil {
		return nil, err
	}
	type kind struct{ eventType, topic, text, reason string }
	var k kind
	var created time.Time
	var id string
	found := make(map[kind]*DeadGroup)
	groups := &DeadGroups{Groups: []DeadGroup{}}
	_, err = pgx.ForEachRow(rows, []any{&k.eventType, &k.topic, &k.text, &k.reason, &created, &id}, func() error {
		groups.Events++
		k.text = normal(k.text)
		g := found[k]
		if g == nil {
			g = &DeadGroup{Type: k.eventType, Topic: k.topic, Error: k.text, Reason: k.reason, Oldest: created.UTC(), Example: id}
			found[k] = g
		}
		g.Count++
		if created.After(g.Newest) {
			g.Newest, g.Example = created.UTC(), id
		}
		if created.Before(g.Oldest) {
			g.Oldest = created.UTC()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, g := range found {
		groups.Groups = append(groups.Groups, *g)
	}
	slices.SortFunc(groups.Groups, func(a, b DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Newest.Compare(a.Newest), cmp.Compare(a.Error, b.Error))
	})
	if err := tx.QueryRow(ctx, more, args.all()...).Scan(&groups.Cut); err != nil {
		return nil, err
	}
	groups.Cut = groups.Cut || groups.Events >= groupLimit || len(groups.Groups) > maxGroups
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
		rows := t.rows(w, "", false, nil, groupLimit, &args)
		dead := fmt.Sprintf("SELECT %s AS type, %s AS topic, %s AS error, t.outbox_reason AS reason, %s AS created, %s AS id FROM (\n%s\n) AS t WHERE %s",
			orElse(c.Type, text, "''"), topic, orElse(c.LastError, text, "''"), col(c.CreatedAt), col(c.ID),
			rows, t.is.Dead)
		// Without an index of the dead they are looked for among the newest rows of all.
		more := fmt.Sprintf("SELECT count(*) >= %d FROM (\n%s\n) AS t", groupLimit, rows)
		groups, err = deadGroups(ctx, tx, dead, more, args)
		return err
	})
	return groups, t.wrap("group the dead events", err)
}

// DeadGroups groups the newest dead events of the subscription.
func (s *subscription) DeadGroups(ctx context.Context) (groups *DeadGroups, err error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	err = byIndex(ctx, s.pool, func(tx pgx.Tx) error {
		// As many of each shard: the order of the whole matters little.
		dead := s.stream.SQL(fmt.Sprintf(`
SELECT p.type, ''::text AS topic, p.last_error AS error, coalesce(p.reason, '') AS reason, p.created_at AS created, p.id
FROM {shards} AS c CROSS JOIN LATERAL (
  SELECT * FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = c.shard AND p.state = 'dead' ORDER BY p.seq DESC LIMIT %d
) AS p
WHERE c.subscription = $1 LIMIT %d`, groupLimit/8, groupLimit))
		more := s.stream.SQL(fmt.Sprintf(`
SELECT EXISTS (SELECT FROM {shards} AS c WHERE c.subscription = $1 AND (
  SELECT true FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = c.shard AND p.state = 'dead' ORDER BY p.seq DESC OFFSET %d LIMIT 1))`,
			groupLimit/8))
		groups, err = deadGroups(ctx, tx, dead, more, arguments{s.name})
		return err
	})
	return groups, s.wrap("group the dead events", err)
}
