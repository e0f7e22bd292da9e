package emittest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// inOrder are the ids of the committed events, by their places in the log.
func (b *bed) inOrder() (ids []uuid.UUID) {
	b.Helper()
	b.must(b.pool.QueryRow(b.Context(), `SELECT array_agg(id ORDER BY seq) FROM `+b.table()).Scan(&ids))
	return ids
}

// wantOrder fails unless the log has just these events, in this order.
func (b *bed) wantOrder(want ...uuid.UUID) {
	b.Helper()
	if got := b.inOrder(); !slices.Equal(got, want) {
		b.Errorf("the log has %v, want %v", got, want)
	}
}

// testBatchOrder emits batches whose dedupe keys and ids fall in the order given: what is
// sorted to avoid deadlocks must not show in the log.
func testBatchOrder(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	const n = 500
	for name, change := range map[string]func(i int, event *outbox.Event){
		"fresh": func(int, *outbox.Event) {},
		"keyed": func(i int, event *outbox.Event) { event.DedupeKey = fmt.Sprintf("%03d", n-i) },
		"ids": func(i int, event *outbox.Event) {
			event.ID = uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012d", n-i))
		},
		"mixed": func(i int, event *outbox.Event) {
			if i%3 == 0 {
				event.DedupeKey = fmt.Sprintf("%03d", n-i)
			}
		},
	} {
		events := make([]outbox.Event, n)
		for i := range events {
			events[i] = b.event()
			change(i, &events[i])
		}
		tx := b.begin(e)
		done, err := tx.EmitMany(b.Context(), events)
		b.must(err)
		b.must(tx.Commit(b.Context()))
		want := make([]uuid.UUID, n)
		for i := range done {
			want[i] = done[i].ID
		}
		if !slices.Equal(b.inOrder(), want) {
			b.Errorf("%s: the log has the batch in another order", name)
		}
		b.clear()
	}
}

func testAggregateKey(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	for _, c := range []struct{ key, aggregateType, aggregateID, want string }{
		{"own", "order", "42", "own"},
		{"", "order", "42", "order/42"},
		{"", "order", "", ""},
		{"", "", "42", ""},
		{"", "", "", ""},
	} {
		event := b.event()
		event.Key, event.AggregateType, event.AggregateID = c.key, c.aggregateType, c.aggregateID
		b.must(e.InTx(b.Context(), func(tx Tx) error {
			if _, err := tx.Emit(b.Context(), event); err != nil {
				return err
			}
			_, err := tx.EmitMany(b.Context(), []outbox.Event{event})
			return err
		}))
		var keys []*string
		b.must(b.pool.QueryRow(b.Context(), `SELECT array_agg(key) FROM `+b.table()).Scan(&keys))
		for _, key := range keys {
			if c.want == "" && key != nil || c.want != "" && (key == nil || *key != c.want) {
				b.Errorf("%+v: the row's key is %v", c, key)
			}
		}
		b.clear()
	}
}

// testPlaceAfterWait lets an event wait for a dedupe key whose holder rolls back. What was
// committed meanwhile comes before it.
func testPlaceAfterWait(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	event := b.event()
	event.DedupeKey = "key"
	for _, emit := range []func(tx Tx) (uuid.UUID, error){
		func(tx Tx) (uuid.UUID, error) {
			done, err := tx.Emit(b.Context(), event)
			return done.ID, err
		},
		func(tx Tx) (uuid.UUID, error) {
			done, err := tx.EmitMany(b.Context(), []outbox.Event{event})
			if err != nil {
				return uuid.Nil, err
			}
			return done[0].ID, nil
		},
	} {
		holder, waiter := b.begin(e), b.begin(e)
		_, err := emit(holder)
		b.must(err)
		var waited uuid.UUID
		answer := make(chan error, 1)
		go func() {
			var err error
			waited, err = emit(waiter)
			answer <- err
		}()
		pgtest.AwaitBlocked(b, b.pool, 1)
		var meanwhile outbox.Emitted
		b.must(e.InTx(b.Context(), func(tx Tx) (err error) {
			meanwhile, err = tx.Emit(b.Context(), b.event())
			return err
		}))
		b.must(holder.Rollback(b.Context()))
		b.must(<-answer)
		b.must(waiter.Commit(b.Context()))
		b.wantOrder(meanwhile.ID, waited)
		b.clear()
	}
}

// testSerialize lets two transactions emit events of one key, and the second commit as soon
// as it can. Without Serialize that is before the first: the log is not in the order of the
// commits. That is tried too, lest the test proves nothing.
func testSerialize(_ *testing.T, b *bed) {
	event := b.event()
	event.Key = "order-42"
	for _, serialize := range []bool{false, true} {
		e := b.emitter(outbox.EmitConfig{Serialize: serialize})
		first, second := b.begin(e), b.begin(e)
		one, err := first.Emit(b.Context(), event)
		b.must(err)
		var two []outbox.Emitted
		answer := make(chan error, 1)
		go func() {
			var err error
			if two, err = second.EmitMany(b.Context(), []outbox.Event{event}); err == nil {
				err = second.Commit(b.Context())
			}
			answer <- err
		}()
		if serialize {
			pgtest.AwaitBlocked(b, b.pool, 1)
			// Other keys, and events without one, wait for nobody.
			other := b.event()
			other.Key = "order-43"
			tx := b.begin(e)
			_, err = tx.EmitMany(b.Context(), []outbox.Event{other, b.event()})
			b.must(err)
			b.must(tx.Rollback(b.Context()))
			b.wantCount(0)
			b.must(first.Commit(b.Context()))
			b.must(<-answer)
		} else {
			b.must(<-answer)
			b.wantOrder(two[0].ID) // the second is committed, and to be published, alone
			b.must(first.Commit(b.Context()))
		}
		b.wantOrder(one.ID, two[0].ID)
		b.clear()
	}
}

// testSerializedBatches would deadlock if keys were locked in the order given.
func testSerializedBatches(_ *testing.T, b *bed) {
	raceBatches(b, outbox.EmitConfig{Serialize: true}, 2*raceSize, func(i int) outbox.Event {
		event := b.event()
		event.Key = fmt.Sprintf("key-%d", i)
		return event
	})
}
