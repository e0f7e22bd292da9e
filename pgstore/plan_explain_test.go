package pgstore_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	planDead    = 100_000
	planPending = 100_000
)

// planner explains the statements of one layout's store.
type planner struct {
	t     *testing.T
	c     planCase
	h     *harness
	store *pgstore.Store
	sql   map[string]pgstore.PlanStatement
	state string // what the planner knows
	next  int    // the number of the next row to load
}

func newPlanner(t *testing.T, c planCase) *planner {
	t.Helper()
	p := &planner{t: t, c: c, h: newHarness(t, c.layout)}
	p.store = p.h.open(t, pgstore.Config{})
	p.sql = pgstore.PlanStatements(p.store)
	pgtest.Exec(t, p.h.pool, "ALTER TABLE "+p.h.table()+" SET (autovacuum_enabled = off)")
	if p.h.layout.DeadLetter != nil {
		pgtest.Exec(t, p.h.pool, "ALTER TABLE "+p.h.letters()+" SET (autovacuum_enabled = off)")
	}
	return p
}

// settleArgs are the arguments of a settle, as a batch sends them.
func settleArgs(kind string, byCtid bool, held []pgstore.PlanHold) []any {
	var tids, ids, zeros, texts []string
	for _, h := range held {
		tids = append(tids, fmt.Sprintf(`"(%d,%d)"`, h.TID.BlockNumber, h.TID.OffsetNumber))
		ids = append(ids, uuid.UUID(h.ID).String())
		zeros, texts = append(zeros, "0"), append(texts, "terminal")
	}
	mark := any(nil)
	if held[0].Mark.Valid {
		mark = held[0].Mark.Time.Format(time.RFC3339Nano)
	}
	array := func(list []string) any { return "{" + strings.Join(list, ",") + "}" }
	args := []any{mark}
	if byCtid {
		args = append(args, array(tids))
	}
	args = append(args, array(ids))
	switch kind {
	case "failed":
		args = append(args, array(zeros), array(texts))
	case "died":
		args = append(args, array(zeros), array(texts), array(texts))
	}
	return args
}

// explain runs a statement as a claim does, with a plan for its actual values, and rolls
// it back.
func (p *planner) explain(name string, want wanted, args ...any) {
	p.t.Helper()
	statement := p.sql[name]
	p.inTx(pgstore.PlanBegin(p.store), func(tx pgx.Tx) error {
		var doc []byte
		all := append([]any{pgx.QueryExecModeCacheDescribe}, args...)
		if err := tx.QueryRow(p.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+statement.SQL, append(all, statement.Constants...)...).Scan(&doc); err != nil {
			return err
		}
		p.judge(name, want, doc)
		return nil
	})
}

// explainPrepared runs a statement as a claim or a settle does that is prepared, with a plan
// for its actual values or, after some executions, for any.
func (p *planner) explainPrepared(begin, name, mode string, want wanted, args ...any) {
	p.t.Helper()
	statement := p.sql[name]
	var literals []string
	for _, arg := range slices.Concat(args, statement.Constants) {
		if arg == nil {
			literals = append(literals, "NULL")
			continue
		}
		literals = append(literals, fmt.Sprintf("'%v'", arg))
	}
	p.inTx(begin, func(tx pgx.Tx) error {
		var doc []byte
		for _, sql := range []string{"SET LOCAL plan_cache_mode = " + mode, "PREPARE settle AS " + statement.SQL} {
			if _, err := tx.Exec(p.t.Context(), sql); err != nil {
				return err
			}
		}
		err := tx.QueryRow(p.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE settle("+strings.Join(literals, ", ")+")",
			pgx.QueryExecModeSimpleProtocol).Scan(&doc)
		if err != nil {
			return err
		}
		p.judge(name+", "+mode, want, doc)
		_, err = tx.Exec(p.t.Context(), "DEALLOCATE settle")
		return err
	})
}

func (p *planner) inTx(begin string, do func(tx pgx.Tx) error) {
	p.t.Helper()
	tx, err := p.h.pool.BeginTx(p.t.Context(), pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(p.t.Context()) }()
	if err := do(tx); err != nil {
		p.t.Fatalf("%s: %v", p.state, err)
	}
}

// wanted is what a plan has to be like.
type wanted struct {
	indexes []string // one of them finds the rows
	tid     bool     // the rows are found by ctid
	primary bool     // the rows are found by id
	rows    int
	perRow  float64 // buffers
	passed  int     // rows that are passed over, and must be
}

func (p *planner) judge(name string, want wanted, doc []byte) {
	p.t.Helper()
	var plans []struct {
		Plan pgtest.PlanNode
		Time float64 `json:"Execution Time"`
		JIT  json.RawMessage
	}
	if err := json.Unmarshal(doc, &plans); err != nil {
		p.t.Fatal(err)
	}
	root := &plans[0].Plan
	var faults, used []string
	root.Walk(func(n *pgtest.PlanNode) {
		switch {
		case n.Type == "Seq Scan":
			faults = append(faults, fmt.Sprintf("a sequential scan of %s", n.Relation))
		case n.Type == "Tid Scan":
			used = append(used, "ctid")
		case n.Index != "":
			used = append(used, n.Index)
		case strings.HasSuffix(n.Type, "Sort"):
			// An incremental sort reads a little ahead.
			if rows := n.Plans[0].Rows * n.Plans[0].Loops; rows > planBatch*1.1 {
				faults = append(faults, fmt.Sprintf("a sort of %.0f rows", rows))
			}
		}
		if tried := n.Removed * n.Loops; tried > 10*planBatch {
			faults = append(faults, fmt.Sprintf("a join of each with each, %.0f times in vain", tried))
		}
	})
	if len(plans[0].JIT) > 0 {
		faults = append(faults, "compiled to machine code, which takes longer than to run it")
	}
	found := func(name string) bool { return slices.Contains(used, name) }
	if len(want.indexes) > 0 && !slices.ContainsFunc(want.indexes, found) ||
		want.tid && !found("ctid") || want.primary && !slices.ContainsFunc(used, func(name string) bool { return strings.HasSuffix(name, "_pkey") }) {
		faults = append(faults, fmt.Sprintf("not the index it should be; it uses %v", used))
	}
	buffers := root.Hit + root.Read
	if limit := want.perRow * float64(want.rows+want.passed); float64(buffers) > limit {
		faults = append(faults, fmt.Sprintf("%d buffers, more than %.0f", buffers, limit))
	}
	p.t.Logf("%s: %s: %.1f buffers for each row, %d in all, %.1f ms, by %v", p.state, name, float64(buffers)/float64(want.rows), buffers, plans[0].Time, used)
	if len(faults) > 0 {
		p.t.Errorf("%s: %s: %s\n%s", p.state, name, strings.Join(faults, "; "), doc)
	}
}
