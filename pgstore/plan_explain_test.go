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
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/internal/pgtest"
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

// load writes delivered rows, dead ones that are the oldest of all, and waiting ones, the
// first fifth of which came from one transaction and has one time.
func (p *planner) load(done, dead, pending int) {
	p.t.Helper()
	p.insert("dead", dead, "now() - interval '10 days' + i * interval '1 ms'")
	p.insert("done", done, "now() - interval '5 days' + i * interval '1 ms'")
	p.insert("pending", pending, fmt.Sprintf("now() - interval '1 day' + greatest(i - %d, 0) * interval '1 ms'", p.next+pending/5))
}

func (p *planner) insert(kind string, rows int, at string) {
	p.t.Helper()
	first := p.next
	p.next += rows
	is := func(then, otherwise string, kinds ...string) string {
		if slices.Contains(kinds, kind) {
			return then
		}
		return otherwise
	}
	var columns, values string
	switch p.c.layout {
	case "modkit":
		columns = "id, namespace, topic, payload, status, attempts, next_attempt_at, created_at, updated_at"
		values = "'mini-chat', 'usage', '{\"amount\": 12}', " + is("'delivered', 1", is("'dead', 10", "'pending', 0", "dead"), "done") + ", at, at, at"
	case "doorito":
		columns = "id, aggregate_type, aggregate_id, event_type, payload, idempotency_key, status, attempts, max_attempts, next_attempt_at, delivered_at, created_at, updated_at"
		values = "'UploadFile', '42', 'file.stored', '{\"amount\": 12}', i::text, " +
			is("'delivered', 0, 5, NULL, at", is("'failed', 5, 5, NULL, NULL", "'pending', 0, 5, at, NULL", "dead"), "done") + ", at, at"
	case "packfinderz":
		columns = "id, event_type, aggregate_type, aggregate_id, payload_json, created_at, published_at, attempt_count"
		values = "'order_created', 'vendor_order', id, '{\"amount\": 12}', at, " + is("at, 0", is("NULL, 10", "NULL, 0", "dead"), "done")
	default:
		columns = "no, kind, part, body, made, tries, due, sent"
		values = "'made', 'k', '{\"amount\": 12}', at, " + is("1, NULL, at", is("3, NULL, NULL", "0, at, NULL", "dead"), "done")
	}
	pgtest.Exec(p.t, p.h.pool, fmt.Sprintf(`INSERT INTO %s (%s) SELECT id, %s FROM (
		SELECT i, lpad(to_hex(i), 32, '0')::uuid AS id, %s AS at FROM generate_series(%d, %d) AS i) AS made`,
		p.h.table(), columns, values, at, first, p.next-1))
	if kind != "dead" || p.h.layout.DeadLetter == nil {
		return
	}
	letters := "id, event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count) " +
		"SELECT id, id, event_type, aggregate_type, aggregate_id, payload_json, 'max_attempts', created_at, attempt_count"
	if p.c.layout != "packfinderz" {
		letters = "id, event, body, reason, failed) SELECT no, no, body, 'max_attempts', made"
	}
	pgtest.Exec(p.t, p.h.pool, fmt.Sprintf("INSERT INTO %s (%s FROM %s", p.h.letters(), letters, p.h.table()))
}

// stale leaves the planner with what it learned before there was a backlog.
func (p *planner) stale() {
	p.t.Helper()
	l := &p.h.layout
	where := l.Columns.CreatedAt.Name + " > now() - interval '2 days'"
	pgtest.Exec(p.t, p.h.pool, fmt.Sprintf("DELETE FROM %s WHERE %s", p.h.table(), where))
	pgtest.Exec(p.t, p.h.pool, "VACUUM ANALYZE")
	p.insert("pending", planPending, fmt.Sprintf("now() - interval '1 day' + greatest(i - %d, 0) * interval '1 ms'", p.next+planPending/5))
}

// middle is a time in the middle of the backlog.
func (p *planner) middle() (at time.Time) {
	p.t.Helper()
	column := p.h.layout.Columns.CreatedAt
	if next := p.h.layout.Columns.NextAttemptAt; !next.IsZero() {
		column = next
	}
	row := p.h.pool.QueryRow(p.t.Context(), fmt.Sprintf("SELECT %s FROM %s WHERE %s = $1", column.Name, p.h.table(), p.h.layout.Columns.ID.Name),
		pgtype.UUID{Bytes: planID(p.next - planPending/2), Valid: true})
	if err := row.Scan(&at); err != nil {
		p.t.Fatal(err)
	}
	return at
}

func planID(i int) (id [16]byte) {
	for place := 15; i > 0; place-- {
		id[place] = byte(i)
		i >>= 8
	}
	return id
}

// held claims a batch. Under row locks, where a claim marks nothing, it only looks.
func (p *planner) held() []pgstore.PlanHold {
	p.t.Helper()
	if p.h.layout.Hold != pgstore.HoldRowLock {
		batch, err := p.store.Claim(p.t.Context(), planBatch)
		if err != nil {
			p.t.Fatal(err)
		}
		return pgstore.PlanHolds(batch)
	}
	rows, err := p.h.pool.Query(p.t.Context(), fmt.Sprintf("SELECT id, ctid FROM %s WHERE id >= $1 ORDER BY id LIMIT $2", p.h.table()),
		pgtype.UUID{Bytes: planID(p.next - planPending), Valid: true}, planBatch)
	if err != nil {
		p.t.Fatal(err)
	}
	held, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h pgstore.PlanHold, err error) {
		return h, row.Scan(&h.ID, &h.TID)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return held
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
	p.inTx(func(tx pgx.Tx) error {
		var doc []byte
		all := append([]any{pgx.QueryExecModeCacheDescribe}, args...)
		if err := tx.QueryRow(p.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+statement.SQL, append(all, statement.Constants...)...).Scan(&doc); err != nil {
			return err
		}
		p.judge(name, want, doc)
		return nil
	})
}

// explainPrepared runs a statement as a settle does: prepared, with a plan for its actual
// values or, after some executions, for any.
func (p *planner) explainPrepared(name, mode string, want wanted, args ...any) {
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
	p.inTx(func(tx pgx.Tx) error {
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

func (p *planner) inTx(do func(tx pgx.Tx) error) {
	p.t.Helper()
	tx, err := p.h.pool.Begin(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(p.t.Context()) }()
	if err := do(tx); err != nil {
		p.t.Fatalf("%s: %v", p.state, err)
	}
}

// planNode is a node of a plan.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Hit      int        `json:"Shared Hit Blocks"`
	Read     int        `json:"Shared Read Blocks"`
	Removed  float64    `json:"Rows Removed by Filter"`
	Plans    []planNode `json:"Plans"`
}

func (n *planNode) walk(visit func(*planNode)) {
	visit(n)
	for i := range n.Plans {
		n.Plans[i].walk(visit)
	}
}

// wanted is what a plan has to be like.
type wanted struct {
	indexes []string // one of them finds the rows
	tid     bool     // the rows are found by ctid
	primary bool     // the rows are found by id
	rows    int
	perRow  float64 // buffers
	fixed   int     // buffers
}

func (p *planner) judge(name string, want wanted, doc []byte) {
	p.t.Helper()
	var plans []struct {
		Plan planNode
		Time float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(doc, &plans); err != nil {
		p.t.Fatal(err)
	}
	root := &plans[0].Plan
	var faults, used []string
	root.walk(func(n *planNode) {
		switch {
		case n.Type == "Seq Scan":
			faults = append(faults, fmt.Sprintf("a sequential scan of %s", n.Relation))
		case n.Type == "Tid Scan":
			used = append(used, "ctid")
		case n.Index != "":
			used = append(used, n.Index)
		case strings.HasSuffix(n.Type, "Sort"):
			if rows := n.Plans[0].Rows * n.Plans[0].Loops; rows > planBatch+1 {
				faults = append(faults, fmt.Sprintf("a sort of %.0f rows", rows))
			}
		}
	})
	found := func(name string) bool { return slices.Contains(used, name) }
	if len(want.indexes) > 0 && !slices.ContainsFunc(want.indexes, found) ||
		want.tid && !found("ctid") || want.primary && !slices.ContainsFunc(used, func(name string) bool { return strings.HasSuffix(name, "_pkey") }) {
		faults = append(faults, fmt.Sprintf("not the index it should be; it uses %v", used))
	}
	buffers := root.Hit + root.Read
	if limit := float64(want.fixed) + want.perRow*float64(want.rows); float64(buffers) > limit {
		faults = append(faults, fmt.Sprintf("%d buffers, more than %.0f", buffers, limit))
	}
	p.t.Logf("%s: %s: %.1f buffers for each row, %d in all, %.1f ms, by %v", p.state, name, float64(buffers)/float64(want.rows), buffers, plans[0].Time, used)
	if len(faults) > 0 {
		p.t.Errorf("%s: %s: %s\n%s", p.state, name, strings.Join(faults, "; "), doc)
	}
}
