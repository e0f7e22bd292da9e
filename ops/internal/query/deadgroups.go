package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops/internal/view"
)

// maxGroups bounds the groups of dead events.
const maxGroups = 100

// DeadGroups reads dead events and groups them. The statement dead selects at most GroupLimit of them, with
// the columns type, topic, error, reason, created and id; more asks, with the same arguments, whether there are
// others. The groups are made here because the database normalizes errors ten times as slowly.
func DeadGroups(ctx context.Context, tx pgx.Tx, dead, more string, args Args) (*view.DeadGroups, error) {
	sql := fmt.Sprintf(`SELECT type, topic, left(coalesce(error, ''), %d), reason, created, id::text FROM (%s) AS dead`, normalLength, dead)
	rows, err := tx.Query(ctx, sql, args.All()...)
	if err != nil {
		return nil, err
	}
	type kind struct{ eventType, topic, text, reason string }
	var k kind
	var created time.Time
	var id string
	found := make(map[kind]*view.DeadGroup)
	groups := &view.DeadGroups{Groups: []view.DeadGroup{}}
	_, err = pgx.ForEachRow(rows, []any{&k.eventType, &k.topic, &k.text, &k.reason, &created, &id}, func() error {
		groups.Events++
		k.text = Normal(k.text)
		g := found[k]
		if g == nil {
			g = &view.DeadGroup{Type: k.eventType, Topic: k.topic, Error: k.text, Reason: k.reason, Oldest: created.UTC(), Example: id}
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
	slices.SortFunc(groups.Groups, func(a, b view.DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Newest.Compare(a.Newest), cmp.Compare(a.Error, b.Error))
	})
	if err := tx.QueryRow(ctx, more, args.All()...).Scan(&groups.Cut); err != nil {
		return nil, err
	}
	groups.Cut = groups.Cut || groups.Events >= GroupLimit || len(groups.Groups) > maxGroups
	groups.Groups = groups.Groups[:min(len(groups.Groups), maxGroups)]
	return groups, nil
}
