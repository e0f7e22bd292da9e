package pgstore_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestPlanNamespace has a module share its table with one that has a great backlog. With the
// index that docs/modkit.md gives for this, its claims do not pass the rows of the other.
func TestPlanNamespace(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, planCases()[0])
	p.load(1000, 1000, planPending)
	pgtest.Exec(t, p.h.pool, `UPDATE modkit_outbox_events SET namespace = 'small' WHERE id >= $1`, planID(p.next-2*planBatch))
	for _, index := range docpage.Blocks(t, "../docs/modkit.md", "sql") {
		pgtest.Exec(t, p.h.pool, index)
	}
	p.store = p.h.open(t, pgstore.Config{Filter: pgstore.Filter{Namespace: "small"}})
	p.sql = pgstore.PlanStatements(p.store)
	want := wanted{indexes: []string{"idx_modkit_outbox_events_namespace"}, rows: planBatch, perRow: p.c.claim}
	for _, p.state = range []string{"never analyzed", "analyzed"} {
		p.explain("claimDue", want, planBatch)
		p.explain("claimDueFrom", want, planBatch, p.middle())
		pgtest.Exec(t, p.h.pool, "VACUUM ANALYZE modkit_outbox_events")
	}
}
