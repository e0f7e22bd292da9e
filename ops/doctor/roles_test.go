package doctor_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxsql"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// workplace is an outbox with an audit log, and a role without any rights.
type workplace struct {
	*patient
	admin *pgxpool.Pool
	name  string
	emits outbox.Target
	table *layouts.Layout // nil for the stream
}

// everywhere runs a test on the stream and on every shipped layout.
func everywhere(t *testing.T, test func(t *testing.T, w *workplace)) {
	t.Helper()
	for _, name := range []string{"standard", "packfinderz", "modkit", "doorito"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &workplace{admin: pgtest.Pool(t), name: name}
			if shipped, ok := shipped.Find(name); ok {
				w.patient, w.emits, w.table = newTable(t, w.admin, name), shipped.Layout, &shipped.Layout
			} else {
				w.patient, w.emits = newStream(t, w.admin, pgstream.Shape{}), pgstream.Stream{}
			}
			files, err := audit.Migrations()
			if err != nil {
				t.Fatal(err)
			}
			pgtest.Migrate(t, w.admin, "", files)
			w.pool = pgtest.AsRole(t, w.admin)
			test(t, w)
		})
	}
}

// grantFor does what doctor says that a role of a use lacks.
func (w *workplace) grantFor(t *testing.T, use doctor.Use) {
	t.Helper()
	w.config.For = use
	grantAll(t, w.admin, w.patient)
	w.isWell(t, "privileges")
}

// TestProducersRole emits in every form with the rights that doctor names, and no others.
func TestProducersRole(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *workplace) {
		t.Helper()
		w.finds(t, "privileges", doctor.Problem, "may not emit", "If it is a producer's role: GRANT ")
		w.grantFor(t, doctor.UseEmit)
		w.emitAll(t, w.pool)
		if w.table == nil {
			pgtest.Exec(t, w.pool, `SELECT outbox_emit('placed', '{}', 'orders')`)
			for range 2 { // the second finds the first
				pgtest.Exec(t, w.pool, `SELECT outbox_emit('placed', '{}', 'orders', p_key => 'k', p_dedupe_key => 'sql', p_serialize => true)`)
				pgtest.Exec(t, w.pool, `SELECT outbox_emit_bytes('placed', '{}', 'orders', p_id => $1::uuid)`, uuid.Max.String())
			}
		}

		// A role that may emit and not relay is a producer's, if nobody says otherwise.
		w.config.For = ""
		w.isWell(t, "privileges")
		if seen := w.examine(t, "privileges").Findings[0].Seen; !strings.Contains(seen, "may emit, and not relay: a producer's role") {
			t.Errorf("a producer's role: %s", seen)
		}
		w.config.For = doctor.UseRelay
		w.finds(t, "privileges", doctor.Problem, "may not relay: it lacks ")
		if worst := w.worst(t); worst != doctor.Problem {
			t.Errorf("a relay that may only emit: %v", worst)
		}
		w.config.For = doctor.UseEmit
		if worst := w.worst(t); worst > doctor.Warning {
			t.Errorf("the whole report of a producer's role is a %v: %+v", worst, w.examine(t).Findings)
		}
	})
}

// worst is the worst of all checks but those of the server, which is everybody's.
func (w *workplace) worst(t *testing.T) doctor.Severity {
	t.Helper()
	return w.examine(t, "layout", "restored", "privileges", "indexes", "locks", "subscriptions", "relays", "stuck", "keys", "topics", "retention").Worst()
}

// emitAll emits one and many events as the role of a pool, with and without an id and a dedupe key, twice each.
func (w *workplace) emitAll(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx := t.Context()
	byPgx, err := outboxpgx.New(w.emits, outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	bySQL, err := outboxsql.New(w.emits, outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // of the pool's connections
	for _, identify := range []func(*outbox.Event){
		func(*outbox.Event) {},
		func(e *outbox.Event) { e.ID = uuid.New() },
		func(e *outbox.Event) {
			if w.table == nil || !w.table.Columns.DedupeKey.IsZero() {
				e.DedupeKey = uuid.NewString()
			}
		},
	} {
		one := layouttest.Event(w.name)
		identify(&one)
		many := []outbox.Event{layouttest.Event(w.name), layouttest.Event(w.name)}
		identify(&many[0])
		identify(&many[1])
		for range 2 {
			err := byPgx.InTx(ctx, pool, func(tx pgx.Tx) error {
				_, err := byPgx.Emit(ctx, tx, one)
				if err == nil {
					_, err = byPgx.EmitMany(ctx, tx, many)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			err = bySQL.InTx(ctx, db, func(tx *sql.Tx) error {
				_, err := bySQL.Emit(ctx, tx, one)
				if err == nil {
					_, err = bySQL.EmitMany(ctx, tx, many)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRelaysRole relays, rotates and operates with the rights that doctor names, and no others.
func TestRelaysRole(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *workplace) {
		t.Helper()
		w.finds(t, "privileges", doctor.Problem, "may not relay", "If it is a relay's role: GRANT ")
		w.grantFor(t, doctor.UseRelay)
		w.config.For = ""
		w.isWell(t, "privileges")
		if seen := w.examine(t, "privileges").Findings[0].Seen; !strings.Contains(seen, "may relay, and not emit: a relay's role") {
			t.Errorf("a relay's role: %s", seen)
		}
		w.emitAll(t, w.admin)

		o, store := w.open(t)
		first := claim(t, store)
		id := first.Messages()[0].ID
		outcomes := slices.Repeat([]outbox.Outcome{{Kind: outbox.Delivered}}, len(first.Messages()))
		outcomes[0] = outbox.Outcome{Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}
		if _, err := first.Settle(t.Context(), outcomes); err != nil {
			t.Fatal(err)
		}
		first.Abandon()
		w.operate(t, o, id)
		work(t, store, outbox.Outcome{Kind: outbox.Failed, Error: "no"}, w.purge())
	})
}

// open is the outbox and its store, as the role.
func (w *workplace) open(t *testing.T) (*ops.Outbox, outbox.Store) {
	t.Helper()
	if w.table != nil {
		o, err := ops.Table(w.pool, *w.table)
		if err != nil {
			t.Fatal(err)
		}
		store, err := pgstore.New(w.pool, *w.table, pgstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return o, store
	}
	// A day's slot that is due to be emptied.
	pgtest.Exec(t, w.admin, `
		INSERT INTO outbox_stream (slot, shard, id, topic, type, payload, created_at)
		SELECT floor(extract(epoch FROM at) / 86400)::bigint % 8, outbox_shard(NULL, id), id, 'orders', 'made', '{}', at
		FROM (SELECT gen_random_uuid() AS id, now() - interval '3 days' AS at) AS new`)
	o, err := ops.Stream(w.pool, pgstream.Stream{}, "")
	if err != nil {
		t.Fatal(err)
	}
	store, err := pgstream.Open(t.Context(), w.pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return o, store
}

// purge is of delivered and, where the outbox has them, of dead events.
func (w *workplace) purge() outbox.Purge {
	purge := outbox.Purge{Retention: 24 * time.Hour}
	if w.table == nil || w.table.DeadLetter != nil {
		purge.DeadLetterRetention = time.Hour
	}
	return purge
}

// operate does all that a person does, to one dead event and to others.
func (w *workplace) operate(t *testing.T, o *ops.Outbox, dead uuid.UUID) {
	t.Helper()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
	must(o.Overview(ctx))
	must(o.List(ctx, ops.Filter{}, ops.Page{}))
	must(o.DeadGroups(ctx))
	must(o.Retry(ctx, ops.Filter{IDs: []uuid.UUID{dead}}, ops.Change{Actor: "somebody"}))
	must(o.Show(ctx, dead))
	is := o.Describe()
	if is.Check(ops.OperationHold) == nil {
		must(o.Hold(ctx, ops.Filter{IDs: []uuid.UUID{dead}}, ops.Change{Actor: "somebody"}))
		must(o.Release(ctx, ops.Filter{IDs: []uuid.UUID{dead}}, ops.Change{Actor: "somebody"}))
	}
	if w.table == nil {
		must(o.Replay(ctx, ops.Filter{Topic: "orders"}, ops.Replay{Change: ops.Change{Actor: "somebody"}}))
	}
	must(o.Purge(ctx, w.purge(), ops.Change{Actor: "somebody"}))
	log, err := o.Audit(ctx, ops.Page{})
	must(log, err)
	if log != nil && len(log.Entries) < 2 {
		t.Errorf("the audit log has %d entries", len(log.Entries))
	}
}
