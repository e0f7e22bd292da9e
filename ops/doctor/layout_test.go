package doctor_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

func TestTableIsMissing(t *testing.T) {
	t.Parallel()
	layout := doorito.Layout()
	p := &patient{pool: pgtest.Pool(t), place: ops.Place{Layout: &layout}}
	p.finds(t, "layout", doctor.Problem, `there is no table "outbox_event"`, "outbox migrate up --layout doorito")
	p.finds(t, "relays", doctor.Note, "not looked at")
}

func TestColumnIsMissing(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	pgtest.Exec(t, p.pool, `ALTER TABLE modkit_outbox_events DROP COLUMN last_error`)
	p.finds(t, "layout", doctor.Problem, `has no column "last_error" for lastError`)
}

func TestTimeWithoutZone(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "packfinderz")
	pgtest.Exec(t, p.pool, `ALTER TABLE outbox_events ALTER COLUMN published_at TYPE timestamp`)
	p.finds(t, "layout", doctor.Warning, `column "published_at" is a timestamp without time zone`, "AT TIME ZONE 'UTC'")
}

func TestStreamIsMissing(t *testing.T) {
	t.Parallel()
	p := &patient{pool: pgtest.Pool(t), place: ops.Place{Stream: &pgstream.Stream{}}}
	p.finds(t, "layout", doctor.Problem, "there is no stream", "outbox migrate up")
}

func TestStreamLacksTables(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	pgtest.Exec(t, p.pool, `DROP TABLE outbox_stream_3, outbox_deliveries`)
	for _, missing := range []string{"table outbox_deliveries", "slot outbox_stream_3", "index outbox_deliveries_seq"} {
		p.finds(t, "layout", doctor.Problem, missing+" is missing")
	}
	p.finds(t, "relays", doctor.Note, "not looked at")
	pgtest.Exec(t, p.pool, `DROP TABLE outbox_settings`)
	p.finds(t, "layout", doctor.Problem, "table outbox_settings is missing", "Restore it from a backup")
}

// TestStreamLacksAnIndex looks at everything else all the same.
func TestStreamLacksAnIndex(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	p.isWell(t, "layout")
	pgtest.Exec(t, p.pool, `DROP INDEX outbox_parked_due, outbox_parked_id`)
	p.finds(t, "layout", doctor.Problem, "index outbox_parked_id is missing", "Make it again with: CREATE INDEX")
	f := p.finds(t, "layout", doctor.Problem, "index outbox_parked_due is missing")
	_, statement, _ := strings.Cut(f.Do, ": ")
	for _, f := range p.examine(t).Findings {
		if strings.Contains(f.Seen, "not looked at") {
			t.Errorf("%+v", f)
		}
	}
	pgtest.Exec(t, p.pool, statement)
	pgtest.Exec(t, p.pool, `CREATE INDEX outbox_parked_id ON outbox_parked (id)`)
	p.isWell(t, "layout")
}

func TestStreamIsOlderOrNewer(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	const version = `CREATE OR REPLACE FUNCTION outbox_schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS `
	pgtest.Exec(t, p.pool, version+`'SELECT 3'`)
	p.finds(t, "layout", doctor.Problem, "the stream's schema is older than this program", "outbox migrate up")
	pgtest.Exec(t, p.pool, version+`'SELECT 1000000'`)
	p.isWell(t, "layout")
	pgtest.Exec(t, p.pool, `ALTER TABLE outbox_parked DROP COLUMN reason, ADD COLUMN why int NOT NULL`)
	p.finds(t, "layout", doctor.Problem, "this program is older than the stream's schema", "column outbox_parked.reason is missing",
		"column outbox_parked.why takes no NULL", "Upgrade the program.")
}

// TestColumnsOfOtherTypes names them all.
func TestColumnsOfOtherTypes(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	pgtest.Exec(t, p.pool, `ALTER TABLE modkit_outbox_events ADD COLUMN colour text NOT NULL`)
	p.finds(t, "layout", doctor.Warning, `has column "colour", which takes no NULL`, "Relays work.")
	if f := p.examine(t, "layout", "relays").Findings; strings.Contains(f[len(f)-1].Seen, "not looked at") {
		t.Errorf("%+v", f)
	}
	pgtest.Exec(t, p.pool, `ALTER TABLE modkit_outbox_events ALTER locked_by TYPE text, ALTER tenant_id TYPE text`)
	p.finds(t, "layout", doctor.Problem, `has column "locked_by" for lockedBy as text: uuid is needed`)
	p.finds(t, "layout", doctor.Problem, `has column "tenant_id" for tenantId as text: uuid is needed`)
	p.finds(t, "relays", doctor.Note, "not looked at")
}

func TestSequenceWithCache(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	pgtest.Exec(t, p.pool, `ALTER SEQUENCE outbox_stream_seq CACHE 20`)
	p.finds(t, "layout", doctor.Problem, "relays refuse the stream", "CACHE 1")
	p.finds(t, "restored", doctor.Note, "not looked at", "See the check layout.")
}

func TestRestored(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool := pgtest.Connect(t, address)
	p := newStream(t, pool, pgstream.Shape{})
	for range 2000 {
		pgtest.Exec(t, pool, `SELECT pg_current_xact_id()`) // the old server is older than the new one
	}
	pgtest.Exec(t, pool, `SELECT outbox_emit('placed', '{}', 'orders')`)
	p.isWell(t, "restored")
	p.pool = pgtest.Connect(t, pgtest.Restore(t, address))
	p.finds(t, "restored", doctor.Problem, "relays refuse to start", "outbox repair")
	pgtest.Exec(t, p.pool, `SELECT outbox_emit('placed', '{}', 'orders') FROM generate_series(1, 2)`)
	p.finds(t, "restored", doctor.Problem, "the newest event that was copied in is of", "producers have written 2 events since")
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	if _, err := doctor.Examine(t.Context(), p.on(t, p.pool), doctor.Config{Patience: -1}); err == nil {
		t.Error("a negative patience was taken")
	}
	_, err := doctor.Examine(t.Context(), p.on(t, p.pool), doctor.Config{Checks: []string{"feet"}})
	if err == nil || !strings.Contains(err.Error(), "server, layout,") {
		t.Errorf("a check that there is not: %v", err)
	}
}
