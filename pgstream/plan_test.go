package pgstream

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

const (
	planDelivered = 1_000_000
	planUnread    = 100_000
	planLate      = 20_000
	planParked    = 20_000
	planPage      = 1000
	few           = 600 // buffers, for a statement on eight cursors, or some twenty rows
)

// TestPlans explains every statement of the main road, as its sessions run it, with a long
// past, a backlog and many parked events: none may read more than its page.
func TestPlans(t *testing.T) {
	t.Parallel()
	p := newPlanner(t)
	shards, fences := p.store.owned()
	p.explain("refresh", p.store.sql.refresh, few, DefaultSubscription, shards, fences)
	p.explain("open", p.store.sql.open, 3*few, p.openArgs()...)
	p.explain("openPunctual", p.store.sql.openPunctual, 8*3*planPage, p.openArgs()...)
	p.exec(p.store.sql.open, p.openArgs()...)
	c := p.cursor(0)
	one := func(list ...any) []any {
		args := []any{DefaultSubscription, uuid.Nil, 30.0, []int16{0}, fences[:1], []int64{c.pos}, []string{c.s2}}
		return append(args, list...)
	}
	seqs := p.seqs(0, c, 20)
	slot := p.slot()
	settled := one([]int64{seqs[19]}, []bool{false}, []string{partMain}, []string{c.s1}, []int64{seqs[0]}, []int64{seqs[19]})
	parked := append(append([]any{}, settled...), repeat(int16(0), 20), seqs, repeat(stateRetry, 20),
		repeat(true, 20), repeat(1, 20), repeat(1.0, 20), repeat("no", 20), repeat("", 20), repeat((*string)(nil), 20), repeat(int16(slot), 20))
	keys, keyShards := p.keys(20)

	p.explain("late", p.store.sql.late, 3*planPage, int16(0), int64(0), c.q1, c.s1, c.s2, planPage)
	p.explain("main", p.store.sql.main, 3*planPage, []int16{0}, []int64{c.q1}, []int64{c.hi}, []string{c.s1}, []string{c.s2}, planPage)
	p.explain("settle", p.store.sql.settle, few, settled...)
	p.explain("settlePark", p.store.sql.settlePark, 3*few, parked...)
	p.explain("tend", p.store.sql.tend, few, DefaultSubscription, uuid.Nil, 30.0, "host", 1, shards, fences, p.store.generation())
	p.explain("shorten", p.store.sql.shorten, few, DefaultSubscription, uuid.Nil)
	p.explain("missing", p.store.stream.names(missingSQL), few, DefaultSubscription, repeat(int16(0), 20), seqs,
		repeat(uuid.Nil, 20), repeat(false, 20))
	p.explain("take", p.store.sql.take, few, DefaultSubscription, uuid.Nil, 30.0, 8, []int16{}, p.store.generation())
	p.explain("reload", p.store.sql.reload, few, DefaultSubscription, shards, []int64{-1, -1, -1, -1, -1, -1, -1, -1}, p.store.generation())
	// From PostgreSQL 17 on along the keys, in their order: a buffer for each event, and the index.
	p.explain("gated", p.store.sql.gated, planParked+few, DefaultSubscription, shards)
	p.explain("due", p.store.sql.due, 20*planPage, DefaultSubscription, shards, planPage/8, followers)
	p.explain("nextDue", p.store.sql.nextDue, few, DefaultSubscription, shards)
	p.explain("settleParked", p.store.sql.settleParked, 40*planPage, settleParkedArgs(shards, fences)...)
	p.explain("promote", p.store.sql.promote, few, DefaultSubscription, keyShards, keys)
	p.explain("promoteAll", p.store.stream.names(promoteAllSQL), 10*planParked, DefaultSubscription, true)
	p.explain("stillGated", p.store.sql.stillGated, few, DefaultSubscription, keyShards, keys)
	p.explain("unread", strings.ReplaceAll(p.store.sql.unread, "{slot}", fmt.Sprintf("outbox_stream_%d", slot)), 5*few)
	// All that was ever written, after the first mark, and nothing that breaks one: index pages, and no row.
	p.explain("passed", p.store.stream.names(brokenMarksSQL), planDelivered/100, []string{"3", "1000000"}, []string{"1000000", "18446744073709551615"}, []int64{0, 0})
	p.explain("stats", p.store.stream.names(fmt.Sprintf(statsSQL, "")), planUnread+2*planParked, DefaultSubscription, outbox.StatsLimit)
	p.explain("waiting", p.store.stream.names(fmt.Sprintf(streamsql.Waiting, "")), 10*few, DefaultSubscription)
	p.explain("blocked", p.store.stream.names(streamsql.Blocked), planParked)
	p.explain("ages", streamsql.SlotAges("", DefaultSlots), few)
	p.explain("ring", p.store.stream.names(streamsql.Ring), few)
	// Nothing ran at the end of the last window: the first pages come with the next.
	p.exec(`UPDATE outbox_shards SET s2 = NULL, q2 = NULL, s1 = (m || ':' || m || ':')::pg_snapshot
		FROM (SELECT xid::text AS m FROM outbox_stream WHERE seq > $1 ORDER BY seq LIMIT 1) AS first`, planDelivered+planLate)
	p.explain("open_with_pages", p.store.sql.open, 8*3*planPage, p.openArgs()...)
	// Other tests on the server hold the snapshot's xmin back; here all has ended.
	p.exec(`UPDATE outbox_shards SET s1 = (m || ':' || m || ':')::pg_snapshot FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS m) AS now`)
	p.exec(`UPDATE outbox_shards SET s2 = NULL, q2 = NULL, q1 = (SELECT max(seq) FROM outbox_stream), opened_at = now()`)
	p.explain("open_of_nothing", p.store.sql.open, few, p.openArgs()...)
	// A topic is gone.
	p.exec(`UPDATE outbox_parked SET state = 'stopped', route = 'orders', next_attempt_at = NULL WHERE state = 'retry'`)
	p.explain("countStopped", p.store.sql.countStopped, 2*planParked, DefaultSubscription, shards)
	p.explain("freeStopped", p.store.sql.freeStopped, 40*planPage, DefaultSubscription, shards, "orders", freeMost/8)
	p.explain("openPunctual", p.store.sql.openPunctual, few, p.openArgs()...)
	p.explain("unread_of_nothing", strings.ReplaceAll(p.store.sql.unread, "{slot}", fmt.Sprintf("outbox_stream_%d", slot)), 5*few)
	p.explain("stats_of_nothing", p.store.stream.names(fmt.Sprintf(statsSQL, "")), 2*planParked, DefaultSubscription, outbox.StatsLimit)
	p.exec(`TRUNCATE outbox_parked`)
	idle := p.store.stream.names(fmt.Sprintf(idleSQL, ""))
	p.explain("idle_of_nothing", idle, few, DefaultSubscription)
	// Windows over all there is, but for the last of it settled.
	p.exec(`UPDATE outbox_shards SET s1 = '1:1:', q1 = 0, s2 = pg_current_snapshot(), q2 = m, hi = m, pos = m - 100
		FROM (SELECT max(seq) AS m FROM outbox_stream) AS last`)
	p.explain("idle", idle, few, DefaultSubscription)
	p.explain("stats_of_a_rest", p.store.stream.names(fmt.Sprintf(statsSQL, "")), 2*few, DefaultSubscription, outbox.StatsLimit)
	p.explain("lag_of_a_rest", p.store.stream.names(fmt.Sprintf(lagSQL, "")), 2*few, DefaultSubscription, outbox.StatsLimit)
	p.explain("waiting_of_a_rest", p.store.stream.names(fmt.Sprintf(streamsql.Waiting, "")), 2*few, DefaultSubscription)
}

// planner is a session of a store on a large stream.
type planner struct {
	*stage
	store *Store
	conn  *pgx.Conn
	// prepared statements keep their plans.
	prepared map[string]bool
}

func newPlanner(t *testing.T) *planner {
	t.Helper()
	p := emptyPlanner(t)
	// Indexes are made quicker than kept.
	p.exec(`DROP INDEX outbox_stream_shard_seq, outbox_stream_xid_shard_seq`)
	p.deliver(planDelivered)
	p.exec(`CREATE INDEX outbox_stream_shard_seq ON outbox_stream (shard, seq)`)
	p.exec(`CREATE INDEX outbox_stream_xid_shard_seq ON outbox_stream (xid, shard, seq)`)
	p.fill(planDelivered, planLate, planUnread)
	p.park()
	p.exec(`VACUUM ANALYZE outbox_stream, outbox_parked, outbox_shards, outbox_relays`)
	p.session()
	return p
}

// emptyPlanner has no events, and no session yet.
func emptyPlanner(t *testing.T) *planner {
	t.Helper()
	// A server of its own: transactions of other tests would make snapshots older, and what is
	// read to look past them more. Nobody tells its planner what tables hold before the test does.
	server := pgtest.Server(t, map[string]string{"autovacuum": "off"})
	p := &planner{stage: newStage(t, server.URL("postgres"), Shape{Shards: 8})}
	p.store = p.open(Config{})
	p.idle(p.store)
	return p
}

// deliver writes events that no cursor has before it.
func (p *planner) deliver(events int) {
	p.Helper()
	p.exec(fmt.Sprintf(`INSERT INTO outbox_stream_%d (slot, shard, id, topic, type, key, payload, xid, seq)
		SELECT %[1]d, i & 7, '00000000-0000-0000-0000-000000000000', 'orders', 'made', 'k', '{}', pg_current_xact_id(), i
		FROM generate_series(1, %d) AS i`, p.slot(), events))
	p.exec(`SELECT setval('outbox_stream_seq', $1)`, events)
}

// fill writes the events of the next window: its late part, and a backlog.
func (p *planner) fill(delivered, lates, unread int) {
	p.Helper()
	const insert = `INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
		SELECT i & 7, lpad(to_hex(i), 32, '0')::uuid, 'orders', 'made', 'k' || i % 50000, '{}' FROM generate_series($1::int, $2::int) AS i`
	// A transaction that runs when the last window ends is the late part of the next one.
	late := p.begin()
	if _, err := late.tx.Exec(p.Context(), `SELECT pg_current_xact_id()`); err != nil {
		p.Fatal(err)
	}
	if _, err := late.tx.Exec(p.Context(), insert, delivered+1, delivered+lates); err != nil {
		p.Fatal(err)
	}
	p.exec(`SELECT pg_current_xact_id()`) // one that completes later, so that snapshots list it
	p.exec(`UPDATE outbox_shards SET s1 = pg_current_snapshot(), q1 = $1, hi = $1`, delivered+lates)
	late.commit()
	for i := range 10 {
		first := delivered + lates + i*unread/10
		p.exec(insert, first+1, first+unread/10)
	}
}

// session connects as a store does.
func (p *planner) session() {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), p.url)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(p.Context(), pgsession.SessionSQL(settings())); err != nil {
		p.Fatal(err)
	}
	p.conn, p.prepared = conn, make(map[string]bool)
}

// park fills the parked events: half are due in turn, each with one that waits behind it.
func (p *planner) park() {
	p.Helper()
	p.exec(`INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, next_attempt_at, id, topic, type, key, payload, created_at)
		SELECT 'default', i & 7, i, CASE WHEN i <= $1 / 2 THEN 'retry' ELSE 'waiting' END, true, 1,
			CASE WHEN i <= $1 / 2 THEN now() + (i - $1 / 4) * interval '1 s' END,
			lpad(to_hex(i), 32, '0')::uuid, 'orders', 'made', 'k' || i % ($1 / 2), '{}', now() FROM generate_series(1, $1::int) AS i`, planParked)
}

// settleParkedArgs settle a batch of parked events: half are delivered, half fail.
func settleParkedArgs(shards []int16, fences []int64) []any {
	numbers, seqs, states := make([]int16, planPage), make([]int64, planPage), repeat("", planPage)
	for i := range planPage {
		numbers[i], seqs[i] = int16((i+1)&7), int64(i+1)
		if i%2 == 0 {
			states[i] = stateRetry
		}
	}
	return []any{
		DefaultSubscription, uuid.Nil, shards, fences, numbers, seqs, states, repeat(true, planPage), repeat(1, planPage),
		repeat(1.0, planPage), repeat("no", planPage), repeat("", planPage), repeat((*string)(nil), planPage),
	}
}

// TestPlansMadeEarly has statements planned when the tables were empty, and run when
// thousands of events have been parked since: nobody has told the planner yet.
func TestPlansMadeEarly(t *testing.T) {
	t.Parallel()
	p := emptyPlanner(t)
	p.session()
	shards, fences := p.store.owned()
	keys, keyShards := p.keys(planPage)
	const enough = 40 * planPage
	explain := func() {
		p.explain("settleParked", p.store.sql.settleParked, enough, settleParkedArgs(shards, fences)...)
		p.explain("freeStopped", p.store.sql.freeStopped, enough, DefaultSubscription, shards, "orders", freeMost)
		p.explain("due", p.store.sql.due, enough, DefaultSubscription, shards, planPage/8, followers)
		p.explain("promote", p.store.sql.promote, enough, DefaultSubscription, keyShards, keys)
		p.explain("stillGated", p.store.sql.stillGated, enough, DefaultSubscription, keyShards, keys)
		p.explain("promoteAll", p.store.stream.names(promoteAllSQL), 10*planParked, DefaultSubscription, true)
	}
	explain()
	p.park()
	explain()
}

// TestPlansOfAStream does the same with the statements that read it, on a stream that was empty
// when its relay began.
func TestPlansOfAStream(t *testing.T) {
	t.Parallel()
	const delivered = planDelivered / 10
	p := emptyPlanner(t)
	p.session()
	explain := func(c cursor) {
		p.explain("open", p.store.sql.open, 3*few, p.openArgs()...)
		p.explain("openPunctual", p.store.sql.openPunctual, 8*3*planPage, p.openArgs()...)
		p.explain("late", p.store.sql.late, 3*planPage, int16(0), int64(0), c.q1, c.s1, c.s2, planPage)
		p.explain("main", p.store.sql.main, 3*planPage, []int16{0}, []int64{c.q1}, []int64{c.hi}, []string{c.s1}, []string{c.s2}, planPage)
	}
	explain(cursor{s1: "1:1:", s2: "1:1:"})
	p.deliver(delivered)
	p.fill(delivered, 0, 0)
	p.exec(`UPDATE outbox_shards SET opened_at = now()`)
	p.explain("open", p.store.sql.open, 3*few, p.openArgs()...)
	p.fill(delivered, planLate, planUnread)
	var now string
	p.scan(`SELECT pg_current_snapshot()::text`, &now)
	c := p.cursor(0)
	c.s2, c.hi = now, delivered+planLate+planUnread
	explain(c)
}

// now is the xid from which on nothing has been written, as after a check.
func (p *planner) now() (xid string) {
	p.Helper()
	p.scan(`SELECT pg_snapshot_xmin(pg_current_snapshot())::text`, &xid)
	return xid
}

// openArgs are the arguments of the statement that opens windows, for all shards.
func (p *planner) openArgs() []any {
	p.Helper()
	numbers, fences := p.store.owned()
	return []any{DefaultSubscription, numbers, fences, planPage, repeat(p.now(), len(numbers))}
}

func (p *planner) cursor(number int16) (c cursor) {
	p.Helper()
	if err := p.pool.QueryRow(p.Context(), `SELECT s1::text, q1, coalesce(s2::text, ''), coalesce(q2, 0), hi, pos FROM outbox_shards WHERE shard = $1`, number).
		Scan(&c.s1, &c.q1, &c.s2, &c.q2, &c.hi, &c.pos); err != nil {
		p.Fatal(err)
	}
	return c
}

// seqs are the first events of a shard's window.
func (p *planner) seqs(number int16, c cursor, n int) (list []int64) {
	p.Helper()
	rows, err := p.pool.Query(p.Context(), `SELECT seq FROM outbox_stream WHERE shard = $1 AND seq > $2 ORDER BY seq LIMIT $3`, number, c.q1, n)
	if err != nil {
		p.Fatal(err)
	}
	if list, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil || len(list) != n {
		p.Fatalf("%d events: %v", len(list), err)
	}
	return list
}

func (p *planner) slot() (slot int) {
	p.Helper()
	p.scan(`SELECT floor(extract(epoch FROM now()) / slot_seconds)::bigint % slots FROM outbox_settings`, &slot)
	return slot
}

// keys are some of the parked ones.
func (p *planner) keys(n int) (keys []string, shards []int16) {
	for i := 1; i <= n; i++ {
		keys, shards = append(keys, fmt.Sprintf("k%d", i)), append(shards, int16(i&7))
	}
	return keys, shards
}

func repeat[T any](value T, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = value
	}
	return list
}

// literal writes an argument into a statement.
func literal(arg any) string {
	value := reflect.ValueOf(arg)
	if value.Kind() == reflect.Slice && value.Type() != reflect.TypeFor[uuid.UUID]() {
		var list []string
		for i := range value.Len() {
			if item := value.Index(i); item.Kind() == reflect.Pointer && item.IsNil() {
				list = append(list, "NULL")
				continue
			}
			list = append(list, fmt.Sprintf("%q", fmt.Sprint(value.Index(i).Interface())))
		}
		return "'{" + strings.Join(list, ",") + "}'"
	}
	return "'" + fmt.Sprint(arg) + "'"
}

// explain runs a statement with its generic plan, rolls it back, and fails if the plan reads
// a table from end to end, sorts a backlog, joins each with each, or takes more buffers.
func (p *planner) explain(name, sql string, buffers int, args ...any) {
	p.Helper()
	ctx := p.Context()
	tx, err := p.conn.Begin(ctx)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var literals []string
	for _, arg := range args {
		literals = append(literals, literal(arg))
	}
	execute := "EXECUTE " + name
	if len(literals) > 0 {
		execute += "(" + strings.Join(literals, ", ") + ")"
	}
	var doc []byte
	if !p.prepared[name] {
		if _, err := tx.Exec(ctx, "PREPARE "+name+" AS "+sql); err != nil {
			p.Fatalf("%s: %v", name, err)
		}
		p.prepared[name] = true
	}
	if err := tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute, pgx.QueryExecModeSimpleProtocol).Scan(&doc); err != nil {
		p.Fatalf("%s: %v", name, err)
	}
	var plans []struct {
		Plan pgtest.PlanNode
		Time float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(doc, &plans); err != nil {
		p.Fatal(err)
	}
	root := &plans[0].Plan
	var faults []string
	root.Walk(func(n *pgtest.PlanNode) {
		switch {
		case n.Type == "Seq Scan" && strings.HasPrefix(n.Relation, "outbox_stream"):
			faults = append(faults, "a sequential scan of "+n.Relation)
		case strings.HasSuffix(n.Type, "Sort") && n.Plans[0].Rows*n.Plans[0].Loops > 2*planPage:
			faults = append(faults, fmt.Sprintf("a sort of %.0f rows", n.Plans[0].Rows*n.Plans[0].Loops))
		}
		if n.Removed*n.Loops > 10*planPage {
			faults = append(faults, fmt.Sprintf("a join of each with each, %.0f times in vain", n.Removed*n.Loops))
		}
	})
	used := root.Hit + root.Read
	written := 0 // what is written beside the answer counts by itself
	for i := range root.Plans {
		written += root.Plans[i].Hit + root.Plans[i].Read
	}
	if used = max(used, written); used > buffers {
		faults = append(faults, fmt.Sprintf("%d buffers, more than %d", used, buffers))
	}
	p.Logf("%s: %d buffers, %.1f ms for %.0f rows", name, used, plans[0].Time, root.Rows)
	if len(faults) > 0 {
		p.Errorf("%s: %s\n%s", name, strings.Join(faults, "; "), doc)
	}
}
