// Package emittest is the conformance suite of the emitters: every one of them runs it,
// on every shipped layout, against a real PostgreSQL.
package emittest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
	"github.com/packfinderz/outbox/internal/layouttest"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// Tx is one transaction of the emitter under test, opened by its user.
type Tx interface {
	Emit(ctx context.Context, event outbox.Event) (outbox.Emitted, error)
	EmitMany(ctx context.Context, events []outbox.Event) ([]outbox.Emitted, error)
	Exec(ctx context.Context, sql string) error
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Emitter is an emitter under test, with the database it is connected to.
type Emitter interface {
	// Begin starts a transaction, as the emitter's user would.
	Begin(ctx context.Context) (Tx, error)
	// InTx runs work in a transaction that the emitter owns.
	InTx(ctx context.Context, work func(Tx) error) error
}

// Open connects an emitter to a database; it closes with the test.
type Open func(t *testing.T, url string, target emit.Target, config *outbox.EmitConfig) Emitter

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, shipped := range layouts.All() {
		t.Run(shipped.Layout.Name, func(t *testing.T) {
			t.Parallel()
			for name, test := range map[string]func(*testing.T, *bed){
				"a committed transaction leaves one event, a rolled-back one none": testCommitAndRollback,
				"a new row starts as the contract says":                            testNewRow,
				"many events go in together":                                       testMany,
				"an id emitted twice is one event":                                 testSameID,
				"a dedupe key emitted twice is one event":                          testSameDedupeKey,
				"two transactions racing on one dedupe key":                        testDedupeRace,
				"two batches racing on the same keys in opposite orders":           testBatchRace,
				"above READ COMMITTED a race is PostgreSQL's to report":            testSerializationFailure,
				"a connection lost at commit":                                      testLostCommit,
				"payload sizes around the limit":                                   testPayloadLimit,
				"hostile payloads":                                                 testHostilePayloads,
				"a refused event touches nothing":                                  testRefusals,
				"time zones":                                                       testTimeZones,
				"InTx commits, nudges and rolls back":                              testInTx,
				"a unique constraint the layout does not know":                     testForeignConstraint,
				"names that need quoting":                                          testHostileNames,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					url := pgtest.URL(t)
					test(t, &bed{T: t, shipped: shipped, layout: shipped.Layout, url: url, open: open})
				})
			}
		})
	}
}

// bed is the database of one test.
type bed struct {
	*testing.T
	shipped layouts.Shipped
	layout  pgstore.Layout
	url     string
	open    Open
	pool    *pgxpool.Pool
}

// migrate makes the layout's tables.
func (b *bed) migrate() {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), b.url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	b.pool = pool
	files, err := b.shipped.Migrations(b.layout)
	if err != nil {
		b.Fatal(err)
	}
	pgtest.Migrate(b.T, pool, b.layout.Schema, files)
}

// emitter makes the tables and opens an emitter on them.
func (b *bed) emitter(config *outbox.EmitConfig) Emitter {
	b.Helper()
	if b.pool == nil {
		b.migrate()
	}
	return b.open(b.T, b.url, b.layout, config)
}

// begin starts a transaction that is rolled back at the end if the test forgets it.
func (b *bed) begin(e Emitter) Tx {
	b.Helper()
	tx, err := e.Begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// event is a valid event for the layout.
func (b *bed) event() outbox.Event { return layouttest.Event(b.layout.Name) }

// hasDedupe reports whether the layout has a dedupe key.
func (b *bed) hasDedupe() bool { return !b.layout.Columns.DedupeKey.IsZero() }

// table is the quoted name of the layout's table.
func (b *bed) table() string {
	if b.layout.Schema == "" {
		return pgx.Identifier{b.layout.Table}.Sanitize()
	}
	return pgx.Identifier{b.layout.Schema, b.layout.Table}.Sanitize()
}

// count is the number of committed rows.
func (b *bed) count() int {
	b.Helper()
	var n int
	if err := b.pool.QueryRow(b.Context(), `SELECT count(*) FROM `+b.table()).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// wantCount fails unless the table has n committed rows.
func (b *bed) wantCount(n int) {
	b.Helper()
	if got := b.count(); got != n {
		b.Fatalf("the table has %d rows, want %d", got, n)
	}
}

// must fails on an error.
func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
