// Package emittest is the conformance suite of the emitters: every one of them runs it,
// on every shipped layout and on the stream, against a real PostgreSQL.
package emittest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
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
type Open func(t *testing.T, url string, target outbox.Target, config outbox.EmitConfig) Emitter

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, place := range places() {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			tests := map[string]func(*testing.T, *bed){
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
				"names that need quoting":                                          testHostileNames,
			}
			if place.dedupe {
				tests["two batches racing on one key of many scopes"] = testScopeRace
			}
			if place.ordered {
				tests["a batch keeps its order"] = testBatchOrder
				tests["an aggregate's events have its key"] = testAggregateKey
				tests["an event that waited comes after those that did not"] = testPlaceAfterWait
				tests["a key's events are in the order of the commits"] = testSerialize
				tests["two serialized batches of the same keys"] = testSerializedBatches
			} else {
				tests["a unique constraint the layout does not know"] = testForeignConstraint
			}
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, &bed{T: t, place: place, url: pgtest.URL(t), open: open})
				})
			}
		})
	}
}

// bed is the database of one test.
type bed struct {
	*testing.T
	place place
	url   string
	open  Open
	pool  *pgxpool.Pool
}

// migrate makes the target's tables.
func (b *bed) migrate() {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), b.url)
	b.must(err)
	b.Cleanup(pool.Close)
	b.pool = pool
	files, err := b.place.migrations()
	b.must(err)
	pgtest.Migrate(b.T, pool, b.place.schema, files)
}

// emitter makes the tables and opens an emitter on them.
func (b *bed) emitter(config outbox.EmitConfig) Emitter {
	b.Helper()
	if b.pool == nil {
		b.migrate()
	}
	return b.open(b.T, b.url, b.place.target, config)
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

// event is a valid event for the target.
func (b *bed) event() outbox.Event { return layouttest.Event(b.place.name) }

// eventIn is a valid event in one of many scopes of dedupe keys.
func (b *bed) eventIn(scope int) outbox.Event {
	event := b.event()
	if event.Topic != "" {
		event.Topic = fmt.Sprintf("%s-%d", event.Topic, scope)
	} else {
		event.Type = fmt.Sprintf("%s-%d", event.Type, scope)
	}
	return event
}

// table is the quoted name of the table that has the events.
func (b *bed) table() string { return b.quoted(b.place.tables[0]) }

func (b *bed) quoted(table string) string {
	if b.place.schema == "" {
		return pgx.Identifier{table}.Sanitize()
	}
	return pgx.Identifier{b.place.schema, table}.Sanitize()
}

// clear empties the tables.
func (b *bed) clear() {
	b.Helper()
	for _, table := range b.place.tables {
		b.exec(`DELETE FROM ` + b.quoted(table))
	}
}

// exec runs a statement that must succeed.
func (b *bed) exec(sql string) {
	b.Helper()
	_, err := b.pool.Exec(b.Context(), sql)
	b.must(err)
}

// stored is a payload as the column gives it back: jsonb has a spelling of its own.
func (b *bed) stored(payload []byte) (out []byte) {
	b.Helper()
	if b.place.raw {
		return payload
	}
	b.must(b.pool.QueryRow(b.Context(), `SELECT $1::text::jsonb::text`, string(payload)).Scan(&out))
	return out
}

// payload is what the row of an event has.
func (b *bed) payload(id uuid.UUID) (out []byte) {
	b.Helper()
	column := pgx.Identifier{b.place.payload}.Sanitize()
	b.must(b.pool.QueryRow(b.Context(), `SELECT `+column+` FROM `+b.table()+` WHERE id = $1`, id).Scan(&out))
	return out
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
