package outbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
)

const (
	planBatch   = 50
	planDead    = 100_000
	planWaiting = 5_000
	// planDeeper is by how many pages more dead rows may lengthen a scan, and each look among the letters: the
	// indexes get deeper.
	planDeeper = 4
)

// A hundred thousand dead rows at the head of the table, with their letters, cost a claim next to nothing: it does not
// read them again, and each row that it takes is looked up among the letters by their index.
func TestPlanDeadRowsAtTheHead(t *testing.T) {
	t.Parallel()
	url, pool := backendtest.Database(t)
	testdb.Exec(t, pool, `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, created_at)
		SELECT gen_random_uuid(), 'ad_paused', 'ad', gen_random_uuid(), '{}', now() - interval '1 hour' + n * interval '1 ms'
		FROM generate_series(1, $1::int) AS n`, planWaiting)
	testdb.Exec(t, pool, `VACUUM ANALYZE outbox_events, outbox_dlq`)
	clean := claimBuffers(t, url, pool)
	testdb.Exec(t, pool, `WITH dead AS (
			INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, created_at, attempt_count, last_error)
			SELECT gen_random_uuid(), 'ad_paused', 'ad', gen_random_uuid(), '{}', now() - interval '1 day' + n * interval '1 ms', 1, 'rejected'
			FROM generate_series(1, $1::int) AS n RETURNING *)
		INSERT INTO outbox_dlq
			(event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count, last_error)
		SELECT id, event_type, aggregate_type, aggregate_id, payload_json, 'rejected', created_at, attempt_count, last_error FROM dead`, planDead)
	testdb.Exec(t, pool, `VACUUM ANALYZE outbox_events, outbox_dlq`)
	full := claimBuffers(t, url, pool)
	t.Logf("the scan of a claim of %d rows reads %d buffers, and %d with %d dead rows before them", planBatch, clean, full, planDead)
	if full > clean+planDeeper*(planBatch+1) {
		t.Errorf("the scan of a claim reads %d buffers with %d dead rows at the head and %d without", full, planDead, clean)
	}
}

// claimBuffers is what the scan of a claim reads once the publisher has been through the table.
func claimBuffers(t *testing.T, url string, pool *pgxpool.Pool) int {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	log := &lastClaim{}
	config.ConnConfig.Tracer = log
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traced.Close)
	repository := newRepository(t, pftest.GORM(t, traced), 0)
	for range 2 {
		fetched, err := repository.FetchUnpublishedForPublish(t.Context(), planBatch)
		if err != nil || len(fetched.Events()) != planBatch {
			t.Fatalf("fetched %d rows: %v", len(fetched.Events()), err)
		}
		fetched.Rollback()
	}
	return explained(t, pool, log)
}

// explained runs the claim once more, and counts what it reads to find its rows. Locking them costs one or two buffers
// a row, as the visibility map happens to be.
func explained(t *testing.T, pool *pgxpool.Pool, claim *lastClaim) int {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: claim.begin})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	var plans []struct{ Plan planNode }
	for range 2 { // a connection's first statement reads the catalog as well
		row := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+claim.sql, claim.args...)
		if err := row.Scan(&plans); err != nil {
			t.Fatal(err)
		}
	}
	if rows := plans[0].Plan.Rows; rows != planBatch {
		t.Fatalf("the claim took %v rows", rows)
	}
	scan := plans[0].Plan.below("LockRows")
	if scan == nil {
		t.Fatal("the claim locks no rows")
	}
	return scan.Hit + scan.Read
}

// planNode is a node of a plan, as EXPLAIN writes it.
type planNode struct {
	Type  string     `json:"Node Type"`
	Rows  float64    `json:"Actual Rows"`
	Hit   int        `json:"Shared Hit Blocks"`
	Read  int        `json:"Shared Read Blocks"`
	Plans []planNode `json:"Plans"`
}

// below is the node that a node of a type has its rows from.
func (n *planNode) below(typ string) *planNode {
	for i := range n.Plans {
		if n.Type == typ {
			return &n.Plans[i]
		}
		if found := n.Plans[i].below(typ); found != nil {
			return found
		}
	}
	return nil
}

// lastClaim is a tracer that keeps the last claim, and what its transaction began with. They are sent together.
type lastClaim struct {
	sent  []string
	begin string
	sql   string
	args  []any
}

func (l *lastClaim) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	l.sent = nil
	return ctx
}

func (l *lastClaim) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if strings.Contains(data.SQL, "SKIP LOCKED") {
		l.begin, l.sql, l.args = strings.Join(l.sent, "; "), data.SQL, data.Args
	}
	l.sent = append(l.sent, data.SQL)
}

func (*lastClaim) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (*lastClaim) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*lastClaim) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
