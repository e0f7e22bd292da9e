package shipped_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/layouts/shipped"
)

// contract is what a table must look like, in the words of its owner's document.
type contract struct {
	table   string
	columns []string // name type null|not null [default]
	indexes []string // definition after "ON schema."
}

func TestContracts(t *testing.T) {
	t.Parallel()
	for layout, contracts := range map[string][]contract{
		"packfinderz": {{
			table: "outbox_events",
			columns: []string{
				"id uuid not null",
				"event_type event_type_enum not null",
				"aggregate_type aggregate_type_enum not null",
				"aggregate_id uuid not null",
				"payload_json jsonb not null",
				"created_at timestamptz not null now()",
				"published_at timestamptz null",
				"attempt_count int4 not null 0",
				"last_error text null",
			},
			indexes: []string{
				"outbox_events_pkey UNIQUE (id)",
				"idx_outbox_events_published_at (published_at)",
				"idx_outbox_events_event_type (event_type)",
				"idx_outbox_events_aggregate (aggregate_type, aggregate_id)",
				"idx_outbox_events_claim (created_at, id) WHERE (published_at IS NULL)",
			},
		}, {
			table: "outbox_dlq",
			columns: []string{
				"id uuid not null gen_random_uuid()",
				"event_id uuid not null",
				"event_type event_type_enum not null",
				"aggregate_type aggregate_type_enum not null",
				"aggregate_id uuid not null",
				"payload_json jsonb not null",
				"error_reason outbox_dlq_reason_enum not null",
				"failed_at timestamptz not null now()",
				"created_at timestamptz not null",
				"attempt_count int4 not null",
				"last_error text null",
				"retried_at timestamptz null",
			},
			indexes: []string{"outbox_dlq_pkey UNIQUE (id)", "idx_outbox_dlq_event_id (event_id)"},
		}},
		"doorito": {{
			table: "outbox_event",
			columns: []string{
				"id uuid not null",
				"aggregate_type varchar(100) not null",
				"aggregate_id varchar(100) not null",
				"event_type varchar(100) not null",
				"payload jsonb not null '{}'::jsonb",
				"status varchar(20) not null 'pending'::character varying",
				"idempotency_key varchar(255) not null",
				"attempts int4 not null 0",
				"max_attempts int4 not null 5",
				"next_attempt_at timestamptz null now()",
				"delivered_at timestamptz null",
				"error_message text not null ''::text",
				"created_at timestamptz not null now()",
				"updated_at timestamptz not null now()",
			},
			indexes: []string{
				"outbox_event_pkey UNIQUE (id)",
				"unique_event_type_idempotency_key UNIQUE (event_type, idempotency_key)",
				"idx_outbox_event_pending_next_attempt (next_attempt_at) WHERE ((status)::text = 'pending'::text)",
				"idx_outbox_event_claim (next_attempt_at, id) WHERE ((status)::text = 'pending'::text)",
				"idx_outbox_event_dead (created_at, id) WHERE ((status)::text = 'failed'::text)",
				"idx_outbox_event_delivered (delivered_at) WHERE ((status)::text = 'delivered'::text)",
				"idx_outbox_event_stray (id) WHERE (((status)::text = ANY ((ARRAY['pending'::character varying, 'delivered'::character varying, 'failed'::character varying])::text[])) IS NOT TRUE)",
			},
		}},
		"modkit": {{
			table: "modkit_outbox_events",
			columns: []string{
				"id uuid not null",
				"namespace text not null",
				"topic text not null",
				"tenant_id uuid null",
				"dedupe_key text null",
				"payload jsonb not null",
				"status text not null",
				"attempts int4 not null 0",
				"next_attempt_at timestamptz not null now()",
				"locked_by uuid null",
				"locked_until timestamptz null",
				"last_error text null",
				"created_at timestamptz not null now()",
				"updated_at timestamptz not null now()",
			},
			indexes: []string{
				"modkit_outbox_events_pkey UNIQUE (id)",
				"idx_modkit_outbox_events_status (status, next_attempt_at)",
				"idx_modkit_outbox_events_locked_until (locked_until)",
				"idx_modkit_outbox_events_dedupe UNIQUE (namespace, topic, dedupe_key) WHERE (dedupe_key IS NOT NULL)",
				"idx_modkit_outbox_events_claim (next_attempt_at, id) WHERE (status = 'pending'::text)",
				"idx_modkit_outbox_events_stray (id) WHERE ((status = ANY (ARRAY['pending'::text, 'processing'::text, 'delivered'::text, 'dead'::text])) IS NOT TRUE)",
			},
		}},
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			pool := migrated(t, layout)
			for _, want := range contracts {
				if got := columns(t, pool, want.table); !slices.Equal(got, want.columns) {
					t.Errorf("%s has columns\n  %s\nwant\n  %s", want.table, strings.Join(got, "\n  "), strings.Join(want.columns, "\n  "))
				}
				slices.Sort(want.indexes)
				if got := indexes(t, pool, want.table); !slices.Equal(got, want.indexes) {
					t.Errorf("%s has indexes\n  %s\nwant\n  %s", want.table, strings.Join(got, "\n  "), strings.Join(want.indexes, "\n  "))
				}
			}
		})
	}
}

// TestPackFinderzEnums compares the enum types, and the layout's own lists, with the fixed values, in order.
func TestPackFinderzEnums(t *testing.T) {
	t.Parallel()
	pool := migrated(t, "packfinderz")
	columns := packfinderz.Layout().Columns
	for name, c := range map[string]struct{ locked, layout []string }{
		"event_type_enum": {
			strings.Fields(`order_created order_state_changed line_item_state_changed license_status_changed media_uploaded
				payment_settled cash_collected vendor_payout_recorded notification_requested
				order_expired order_canceled reservation_released
				ad_created ad_updated ad_paused ad_activated ad_expired ad_daily_rollup_ready`),
			columns.Type.Values,
		},
		"aggregate_type_enum": {
			strings.Fields(`vendor_order checkout_group license store media ledger_event notification ad`),
			columns.AggregateType.Values,
		},
		"outbox_dlq_reason_enum": {
			strings.Fields(`max_attempts unknown_event_type invalid_payload invalid_aggregate payload_too_large rejected terminal invalid_row`),
			packfinderz.Layout().DeadLetter.Columns.Reason.Values,
		},
	} {
		rows, err := pool.Query(t.Context(), `
			SELECT enumlabel::text FROM pg_enum WHERE enumtypid = to_regtype($1) ORDER BY enumsortorder`, name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.locked) {
			t.Errorf("%s is %v, want %v", name, got, c.locked)
		}
		if !slices.Equal(c.layout, c.locked) {
			t.Errorf("the layout's values of %s are %v, want %v", name, c.layout, c.locked)
		}
	}
}

// TestPackFinderzAppendOnly tries to rewrite history, column by column.
func TestPackFinderzAppendOnly(t *testing.T) {
	t.Parallel()
	pool := migrated(t, "packfinderz")
	pgtest.Exec(t, pool, `
		INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES (gen_random_uuid(), 'order_created', 'vendor_order', gen_random_uuid(), '{}')`)
	pgtest.Exec(t, pool, `
		INSERT INTO outbox_dlq (event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count)
		SELECT id, event_type, aggregate_type, aggregate_id, payload_json, 'max_attempts', created_at, 10 FROM outbox_events`)
	mutable := map[string][]string{
		"outbox_events": {"published_at", "attempt_count", "last_error"},
		"outbox_dlq":    {"retried_at"},
	}
	for table, allowed := range mutable {
		for _, described := range columns(t, pool, table) {
			column, _, _ := strings.Cut(described, " ")
			_, err := pool.Exec(t.Context(), `UPDATE `+table+` SET `+column+` = `+column)
			var pgErr *pgconn.PgError
			refused := errors.As(err, &pgErr) && strings.Contains(pgErr.Message, "append-only")
			if refused == slices.Contains(allowed, column) {
				t.Errorf("UPDATE of %s.%s: got %v", table, column, err)
			}
		}
	}
}

// migrated returns a database with a layout's tables.
func migrated(t *testing.T, name string) *pgxpool.Pool {
	t.Helper()
	shipped, ok := shipped.Find(name)
	if !ok {
		t.Fatalf("there is no layout %s", name)
	}
	files, err := shipped.Migrations(shipped.Layout)
	if err != nil {
		t.Fatal(err)
	}
	pool := pgtest.Pool(t)
	pgtest.Migrate(t, pool, "", files)
	return pool
}

func columns(t *testing.T, pool *pgxpool.Pool, table string) []string {
	t.Helper()
	return list(t, pool, `
		SELECT concat_ws(' ', column_name,
			udt_name || coalesce('(' || character_maximum_length || ')', ''),
			CASE is_nullable WHEN 'NO' THEN 'not null' ELSE 'null' END, column_default)
		FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position`, table)
}

func indexes(t *testing.T, pool *pgxpool.Pool, table string) []string {
	t.Helper()
	return list(t, pool, `
		SELECT concat_ws(' ', indexname, CASE WHEN indexdef LIKE 'CREATE UNIQUE%' THEN 'UNIQUE' END,
			substring(indexdef FROM ' USING btree (.*)'))
		FROM pg_indexes WHERE tablename = $1 ORDER BY indexname COLLATE "C"`, table)
}

func list(t *testing.T, pool *pgxpool.Pool, sql, table string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, table)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}
