package pgstore

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
)

// outcomeGroup are the rows of a batch with one kind of outcome and one mark: what one
// statement settles.
type outcomeGroup struct {
	groupKey
	places  []int
	tids    []pgtype.TID
	ids     [][16]byte
	delays  []float64
	counts  []int32
	errors  []*string
	reasons []string
}

type groupKey struct {
	kind outbox.OutcomeKind
	mark pgtype.Timestamptz
}

// groupOutcomes sorts rows into statements, in the order in which they first appear.
func groupOutcomes(messages []outbox.Message, outcomes []outbox.Outcome, holds []hold, places []int) []*outcomeGroup {
	var groups []*outcomeGroup
	index := make(map[groupKey]*outcomeGroup, 1)
	var last *outcomeGroup
	for _, i := range places {
		outcome := &outcomes[i]
		kind := outcome.Kind
		if kind == outbox.Stopped {
			kind = outbox.Released // the next claim leaves it out
		}
		if key := (groupKey{kind, holds[i].mark}); last == nil || last.groupKey != key {
			if last = index[key]; last == nil {
				last = &outcomeGroup{groupKey: key}
				index[key] = last
				groups = append(groups, last)
			}
		}
		last.add(i, messages[i].ID, holds[i].tid, outcome)
	}
	return groups
}

func (g *outcomeGroup) add(place int, id [16]byte, tid pgtype.TID, outcome *outbox.Outcome) {
	g.places = append(g.places, place)
	g.tids = append(g.tids, tid)
	g.ids = append(g.ids, id)
	switch outcome.Kind {
	case outbox.Failed:
		g.delays = append(g.delays, outcome.Delay.Seconds())
		g.errors = append(g.errors, &outcome.Error)
	case outbox.Died:
		count := int32(1)
		if outcome.Uncounted {
			count = 0
		}
		text := &outcome.Error
		if outcome.Error == "" {
			text = nil
		}
		g.counts = append(g.counts, count)
		g.errors = append(g.errors, text)
		g.reasons = append(g.reasons, string(outcome.Reason))
	case outbox.Delivered, outbox.Released, outbox.Stopped:
	}
}

// statement is what settles the group, with its arguments.
func (g *outcomeGroup) statement(sql *settles) (*statement, []any) {
	args := []any{g.mark}
	if sql.byCtid {
		// pgx encodes a plain slice of these by reflection, which is slow.
		args = append(args, pgtype.FlatArray[pgtype.TID](g.tids))
	}
	args = append(args, g.ids)
	switch g.kind {
	case outbox.Delivered:
		return sql.delivered, args
	case outbox.Failed:
		return sql.failed, append(args, g.delays, g.errors)
	case outbox.Died:
		return sql.died, append(args, g.counts, g.errors, g.reasons)
	default:
		return sql.released, args
	}
}
