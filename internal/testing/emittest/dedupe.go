package emittest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func testSameID(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	event := b.event()
	event.ID = uuid.New()
	other := b.event()

	tx := b.begin(e)
	// Twice in one call, twice in one transaction, twice in two.
	done, err := tx.EmitMany(b.Context(), []outbox.Event{event, event, other})
	b.must(err)
	if done[0].AlreadyEnqueued == done[1].AlreadyEnqueued || done[0].ID != event.ID || done[1].ID != event.ID || done[2].AlreadyEnqueued {
		b.Fatalf("got %+v", done)
	}
	again, err := tx.Emit(b.Context(), event)
	b.must(err)
	b.must(tx.Commit(b.Context()))
	tx = b.begin(e)
	later, err := tx.EmitMany(b.Context(), []outbox.Event{b.event(), event})
	b.must(err)
	b.must(tx.Commit(b.Context()))
	if want := (outbox.Emitted{ID: event.ID, AlreadyEnqueued: true}); again != want || later[1] != want || later[0].AlreadyEnqueued {
		b.Fatalf("got %+v and %+v", again, later)
	}
	b.wantCount(3)
}

func testSameDedupeKey(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	event := b.event()
	event.DedupeKey = "order-1"
	tx := b.begin(e)
	if !b.place.dedupe {
		_, err := tx.Emit(b.Context(), event)
		wantRefused(b, err, "dedupe key", "no column")
		return
	}
	first, err := tx.Emit(b.Context(), event)
	b.must(err)
	repeated, err := tx.EmitMany(b.Context(), []outbox.Event{event, event})
	b.must(err)
	for _, result := range repeated {
		if result.ID != first.ID || !result.AlreadyEnqueued {
			b.Fatalf("got %+v, want %s already enqueued", result, first.ID)
		}
	}
	// The same key in another scope is another event.
	keyed := append([]outbox.Event{event}, b.otherScopes()...)
	ids := []uuid.UUID{first.ID}
	for i := range keyed[1:] {
		keyed[i+1].DedupeKey = event.DedupeKey
		done, err := tx.Emit(b.Context(), keyed[i+1])
		b.must(err)
		if done.AlreadyEnqueued || slices.Contains(ids, done.ID) {
			b.Fatalf("a key was taken for that of another scope: %+v", done)
		}
		ids = append(ids, done.ID)
	}
	// Each is found again in its own scope, one by one, together, and by later transactions.
	b.repeat(tx, keyed, ids)
	b.must(tx.Commit(b.Context()))
	tx = b.begin(e)
	b.repeat(tx, keyed, ids)
	b.must(tx.Commit(b.Context()))
	b.wantCount(len(ids))
}

// otherScopes are events that differ from event in one field each within which a dedupe key is unique.
func (b *bed) otherScopes() []outbox.Event {
	scopes := []outbox.Event{b.eventIn(1)}
	if b.event().Topic != "" { // where a topic is part of the scope, a namespace is
		elsewhere := b.event()
		elsewhere.Namespace += "elsewhere"
		scopes = append(scopes, elsewhere)
	}
	return scopes
}

// repeat emits events that are there, and fails unless each answer is its own id.
func (b *bed) repeat(tx Tx, events []outbox.Event, ids []uuid.UUID) {
	b.Helper()
	many, err := tx.EmitMany(b.Context(), events)
	b.must(err)
	for i, id := range ids {
		one, err := tx.Emit(b.Context(), events[i])
		b.must(err)
		if want := (outbox.Emitted{ID: id, AlreadyEnqueued: true}); one != want || many[i] != want {
			b.Errorf("event %d emitted again is %+v, and among many %+v, want %+v", i, one, many[i], want)
		}
	}
}

// testDedupeRace lets the second transaction run into the first one's uncommitted row.
func testDedupeRace(_ *testing.T, b *bed) {
	if !b.place.dedupe {
		event := b.event()
		event.ID = uuid.New()
		raceOn(b, event) // the id is the only key there is
		return
	}
	event := b.event()
	event.DedupeKey = "race"
	raceOn(b, event)
}

func raceOn(b *bed, event outbox.Event) {
	b.Helper()
	e := b.emitter(outbox.EmitConfig{})
	first, second := b.begin(e), b.begin(e)
	winner, err := first.Emit(b.Context(), event)
	b.must(err)

	type answer struct {
		outbox.Emitted
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		done, err := second.Emit(b.Context(), event)
		answers <- answer{done, err}
	}()
	pgtest.AwaitBlocked(b, b.pool, 1)
	b.must(first.Commit(b.Context()))
	loser := <-answers
	b.must(loser.err)
	b.must(second.Commit(b.Context()))
	if winner.AlreadyEnqueued || !loser.AlreadyEnqueued || loser.ID != winner.ID {
		b.Fatalf("winner %+v, loser %+v", winner, loser.Emitted)
	}
	b.wantCount(1)
}

// testBatchRace would deadlock if rows were written in the order given.
func testBatchRace(_ *testing.T, b *bed) {
	raceBatches(b, outbox.EmitConfig{}, raceSize, func(i int) outbox.Event {
		event := b.event()
		if b.place.dedupe {
			event.DedupeKey = fmt.Sprintf("key-%03d", i)
		} else {
			event.ID = uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012d", i+1))
		}
		return event
	})
}

// testScopeRace would deadlock if rows were written in the order of their keys alone.
func testScopeRace(_ *testing.T, b *bed) {
	raceBatches(b, outbox.EmitConfig{}, raceSize, func(i int) outbox.Event {
		event := b.eventIn(i)
		event.DedupeKey = "key"
		return event
	})
}

// raceSize is the size of batches that are long enough to meet in their middle.
const raceSize = 400

// raceBatches emits the same events in opposite orders at the same time, several times, and
// expects so many rows each time.
func raceBatches(b *bed, config outbox.EmitConfig, rows int, event func(i int) outbox.Event) {
	b.Helper()
	e := b.emitter(config)
	const rounds = 10
	batch := make([]outbox.Event, raceSize)
	for i := range batch {
		batch[i] = event(i)
	}
	reversed := slices.Clone(batch)
	slices.Reverse(reversed)
	failures := make(chan error, 2)
	for range rounds {
		start := make(chan struct{})
		for _, events := range [][]outbox.Event{batch, reversed} {
			go func() {
				<-start
				failures <- e.InTx(b.Context(), func(tx Tx) error {
					_, err := tx.EmitMany(b.Context(), events)
					return err
				})
			}()
		}
		close(start)
		for range 2 {
			b.must(<-failures)
		}
		b.wantCount(rows)
		b.clear()
	}
}

func testSerializationFailure(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	event := b.event()
	event.ID = uuid.New()
	tx := b.begin(e)
	b.must(tx.Exec(b.Context(), `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`))
	b.must(tx.Exec(b.Context(), `SELECT count(*) FROM pg_class`)) // takes the snapshot
	b.must(e.InTx(b.Context(), func(tx Tx) error {
		_, err := tx.Emit(b.Context(), event)
		return err
	}))
	_, err := tx.Emit(b.Context(), event)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "40001" {
		b.Fatalf("got %v, want PostgreSQL's 40001", err)
	}
}

// testForeignConstraint gives the table a constraint of its owner's.
func testForeignConstraint(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	column := pgx.Identifier{b.place.payload}.Sanitize()
	b.exec(`CREATE UNIQUE INDEX ON ` + b.table() + ` ((` + column + `->>'order'))`)
	event := b.event()
	event.Payload = []byte(`{"order": "1"}`)
	tx := b.begin(e)
	_, err := tx.Emit(b.Context(), event)
	b.must(err)
	event.ID = uuid.New()
	_, err = tx.Emit(b.Context(), event)
	if err == nil || !strings.Contains(err.Error(), "a constraint the layout does not know") {
		b.Fatalf("got %v", err)
	}
	_, err = tx.EmitMany(b.Context(), []outbox.Event{event})
	if err == nil || !strings.Contains(err.Error(), "a constraint the layout does not know") {
		b.Fatalf("got %v", err)
	}
	// Where the id is new, PostgreSQL says it in its own words.
	event.ID = uuid.Nil
	_, err = tx.Emit(b.Context(), event)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "23505" {
		b.Fatalf("got %v, want PostgreSQL's 23505", err)
	}
}
