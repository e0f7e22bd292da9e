package pgstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// planBatch is how many rows the statements are asked for.
const planBatch = 500

// planCase is a layout with the cost of its statements, in buffers for each row of a
// batch: about half as much again as the highest measured, as the test's own rollbacks
// leave dead rows behind.
type planCase struct {
	layout string
	done   int
	// due and expired are the indexes of the claims.
	due     string
	expired string
	letters string // the index of the dead letters, where a claim looks at them twice
	purge   string // the index of what is delivered
	claim   float64
	settle  float64
	renew   float64
}

func planCases() []planCase {
	return []planCase{
		{layout: "modkit", done: 1_000_000, due: "idx_modkit_outbox_events_claim",
			expired: "idx_modkit_outbox_events_locked_until", purge: "idx_modkit_outbox_events_status", claim: 30, settle: 40, renew: 40},
		{layout: "doorito", done: 100_000, due: "idx_outbox_event_claim", purge: "idx_outbox_event_delivered", claim: 26, settle: 42, renew: 40},
		{layout: "packfinderz", done: 100_000, due: "idx_outbox_events_claim", letters: "idx_outbox_dlq_event_id", claim: 8, settle: 36},
		{layout: "ours", done: 100_000, due: "Our Events_due_no_idx",
			expired: "Our Events_lease_no_idx", claim: 36, settle: 32, renew: 32},
	}
}

// TestPlans runs every statement of a claim and a settle on tables with a past: a great
// many delivered rows, dead ones at the head, and a backlog. None may cost more than its
// batch, whatever the planner knows of the table: nothing, what was true before the
// backlog came, or everything.
func TestPlans(t *testing.T) {
	t.Parallel()
	for _, c := range planCases() {
		t.Run(c.layout, func(t *testing.T) {
			t.Parallel()
			p := newPlanner(t, c)
			p.load(c.done, planDead, planPending)
			p.run("never analyzed")
			p.stale()
			p.run("analyzed before the backlog")
			pgtest.Exec(t, p.h.pool, "VACUUM ANALYZE "+p.h.table())
			p.run("analyzed")
		})
	}
}

// run explains every statement.
func (p *planner) run(state string) {
	p.t.Helper()
	p.state = state
	p.claims()
	p.waiting()
	p.purge()
	held := p.held()
	p.settles(held)
	if _, ok := p.sql["dead"]; ok {
		p.dead(held)
	}
	if _, ok := p.sql["renew"]; ok {
		p.renew(held)
	}
	if _, ok := p.sql["claimExpired"]; ok {
		p.noneExpired()
		p.expired()
	}
}

// noneExpired is the look for expired leases that every claim makes, in vain as nearly always: it
// costs a look-up in the index, however much is held and however much is done.
func (p *planner) noneExpired() {
	p.t.Helper()
	p.explain("claimExpired", wanted{indexes: []string{p.c.expired}, rows: 1, perRow: 24}, planBatch)
}

func (p *planner) claims() {
	p.t.Helper()
	index := wanted{indexes: []string{p.c.due}, rows: planBatch, perRow: p.c.claim}
	all := index
	if p.h.layout.Terminal == layouts.TerminalDeadLetter && p.h.locks() {
		// Dead rows stay in the index of what waits, so a scan from the start passes all of
		// them, at four buffers each: this is the price of a contract that has no state for
		// dead. A claim from the watermark does not pay it.
		all.passed = planDead
	}
	p.explain("claimDue", all, planBatch)
	p.explain("claimDueFrom", index, planBatch, p.middle())
	const generic = "force_generic_plan"
	p.explainPrepared(pgstore.PlanBegin(p.store), "claimDue", generic, all, planBatch)
	p.explainPrepared(pgstore.PlanBegin(p.store), "claimDueFrom", generic, index, planBatch, p.middle().Format(time.RFC3339Nano))
}

// waiting asks for the first events of three kinds.
func (p *planner) waiting() {
	p.t.Helper()
	want := wanted{rows: 3 * tablesql.Limit, perRow: 4}
	if p.h.layout.Hold == layouts.HoldRowLock {
		want.passed = planDead // as for a claim
	}
	p.explain("waiting", want, 0.0)
}

func (p *planner) settles(held []pgstore.PlanHold) {
	p.t.Helper()
	for _, kind := range []string{"delivered", "failed", "died", "released"} {
		for _, by := range []string{"ctid", "id", "locks"} {
			name := kind + " by " + by
			if _, ok := p.sql[name]; !ok {
				continue
			}
			want := wanted{rows: len(held), perRow: p.c.settle, tid: by != "id", primary: by == "id"}
			rows := held
			if by == "locks" {
				rows = unmarked(held)
			}
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				p.explainPrepared("BEGIN", name, mode, want, settleArgs(kind, by != "id", rows)...)
			}
		}
	}
}

func (p *planner) renew(held []pgstore.PlanHold) {
	p.t.Helper()
	want := wanted{rows: len(held), perRow: p.c.renew, primary: true}
	p.explain("renew", want, held[0].Mark, planIDs(held))
	if _, ok := p.sql["end leases"]; ok {
		p.explain("end leases", want, planIDs(held), slices.Repeat([]pgtype.Timestamptz{held[0].Mark}, len(held)))
	}
	if _, ok := p.sql["push"]; ok {
		p.explain("push", want, nil, planIDs(held))
	}
}

// purge finds nothing that is old enough, as it does nearly always: it must not read what is delivered to see that.
func (p *planner) purge() {
	p.t.Helper()
	if p.c.purge == "" {
		return
	}
	const age = 100 * 365 * 24 * time.Hour
	p.explain("unknown", wanted{indexes: []string{strings.TrimSuffix(p.c.due, "_claim") + "_stray"}, rows: 1, perRow: 20})
	p.explain("purge", wanted{indexes: []string{p.c.purge}, rows: 1, perRow: 20, tid: true}, age.Seconds(), planBatch)
}

// unmarked are rows that are only locked.
func unmarked(held []pgstore.PlanHold) []pgstore.PlanHold {
	list := slices.Clone(held)
	for i := range list {
		list[i].Mark = pgtype.Timestamptz{}
	}
	return list
}

// dead looks a whole batch that has failed before up among the letters.
func (p *planner) dead(held []pgstore.PlanHold) {
	p.t.Helper()
	p.explain("dead", wanted{indexes: []string{p.c.letters}, rows: len(held), perRow: 12}, planIDs(held))
}

func planIDs(held []pgstore.PlanHold) [][16]byte {
	ids := make([][16]byte, len(held))
	for i := range held {
		ids[i] = held[i].ID
	}
	return ids
}

// expired lets the leases of several batches run out, on the last attempt.
func (p *planner) expired() {
	p.t.Helper()
	for range 4 {
		p.held()
	}
	l := &p.h.layout.Columns
	pgtest.Exec(p.t, p.h.pool, "UPDATE "+p.h.table()+" SET "+l.LockedUntil.Name+" = "+l.LockedUntil.Name+" - interval '1 hour', "+
		l.Attempts.Name+" = 10 WHERE "+l.LockedUntil.Name+" > now()")
	want := wanted{indexes: []string{p.c.expired}, rows: planBatch, perRow: p.c.claim}
	p.explain("claimExpired", want, planBatch)
	want.tid = true
	p.explain("sweep", want, planBatch)
	p.explain("far leases", wanted{indexes: []string{p.c.expired}, rows: planBatch, perRow: 1})
	pgtest.Exec(p.t, p.h.pool, "DELETE FROM "+p.h.table()+" WHERE "+l.LockedUntil.Name+" < now()")
}

// statementLog is a tracer that keeps the statements of a pool.
type statementLog struct{ list []string }

func (l *statementLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.list = append(l.list, data.SQL)
	return ctx
}

func (*statementLog) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *statementLog) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (l *statementLog) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	l.list = append(l.list, data.SQL)
}

func (*statementLog) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TestPlanWatermark is what makes dead rows at the head bearable where they stay in the
// index: after one scan from the start a store goes on from where it was.
func TestPlanWatermark(t *testing.T) {
	t.Parallel()
	cases := planCases()
	c := cases[slices.IndexFunc(cases, func(c planCase) bool { return c.layout == "packfinderz" })]
	p := newPlanner(t, c)
	p.load(1000, planDead, 20_000)
	pgtest.Exec(t, p.h.pool, "VACUUM ANALYZE")
	log := &statementLog{}
	config, err := pgxpool.ParseConfig(p.h.url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = log
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgstore.New(pool, p.h.layout, pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		log.list = nil
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: planBatch})
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Messages()) != planBatch {
			t.Fatalf("claim %d took %d events", i, len(batch.Messages()))
		}
		full := slices.Contains(log.list, p.sql["claimDue"].SQL)
		if i == 0 != full {
			t.Errorf("claim %d scanned from the start: %t\n%s", i, full, strings.Join(log.list, "\n"))
		}
		if _, err := batch.Settle(t.Context(), slices.Repeat([]outbox.Outcome{{Kind: outbox.Delivered}}, planBatch)); err != nil {
			t.Fatal(err)
		}
		batch.Abandon()
	}
	p.state = "from the store's watermark"
	p.explain("claimDueFrom", wanted{indexes: []string{c.due}, rows: planBatch, perRow: c.claim}, planBatch, pgstore.PlanWatermark(store))
}
