package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops/view"
)

const maxGroups = 100

// DeadGroups reads dead events and groups them. The statement dead selects at most GroupLimit of them, with
// the columns type, topic, error, reason, created and id; more asks, with the same arguments, whether there are
// others. The groups are made here because the database normalizes errors ten times as slowly.
func DeadGroups(ctx context.Context, tx pgx.Tx, dead, more string, args Args) (*view.DeadGroups, error) {
	sql := fmt.Sprintf(`SELECT type, topic, left(coalesce(error, ''), %d), reason, created, id::text FROM (%s) AS dead`, normalLength, dead)
	rows, _ := tx.Query(ctx, sql, args.All()...) // the rows say what failed
	type kind struct{ eventType, topic, text, reason string }
	var k kind
	var created time.Time
	var id string
	found := make(map[kind]*view.DeadGroup)
	groups := &view.DeadGroups{Groups: []view.DeadGroup{}}
	_, err := pgx.ForEachRow(rows, []any{&k.eventType, &k.topic, &k.text, &k.reason, &created, &id}, func() error {
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

// maxShares bounds the topics, types or tenants that an overview lists.
const maxShares = 20

// Shares reads the parts of the backlog into an overview. A row has what the backlog is divided by ("state",
// "topic", "type" or "tenant"), the part's name, count and oldest age, and the total count.
func Shares(rows pgx.Rows, o *view.Overview) (total int64, err error) {
	var kind string
	var share view.Share
	shares := map[string][]view.Share{}
	_, err = pgx.ForEachRow(rows, []any{&kind, &share.Name, &share.Count, &share.OldestSeconds, &total}, func() error {
		if kind == "state" {
			o.ByState[view.State(share.Name)] = view.Count{N: share.Count}
			o.OldestSeconds = max(o.OldestSeconds, share.OldestSeconds)
		} else {
			shares[kind] = append(shares[kind], share)
		}
		return nil
	})
	o.ByTopic, o.ByType, o.ByTenant = largest(shares["topic"]), largest(shares["type"]), largest(shares["tenant"])
	return total, err
}

func largest(list []view.Share) []view.Share {
	slices.SortFunc(list, func(a, b view.Share) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxShares)]
}
