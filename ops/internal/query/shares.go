package query

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops/internal/view"
)

// maxShares bounds the topics, types or tenants that an overview lists.
const maxShares = 20

// Shares reads the parts of the backlog into an overview: rows of what it is divided by ("state", "topic", "type"
// or "tenant"), the part's name, count and oldest age, and the count of all.
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

// largest are the largest shares, and no more than people read.
func largest(list []view.Share) []view.Share {
	slices.SortFunc(list, func(a, b view.Share) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxShares)]
}
