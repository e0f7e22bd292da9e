package pgstore_test

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
)

func (m *machine) emit(rt *rapid.T) {
	events, emitted := m.newEvents(rt)
	err := m.h.emitter.InTx(m.t.Context(), m.h.pool, func(tx pgx.Tx) error {
		return m.write(tx, events, emitted)
	})
	if err != nil {
		rt.Fatal(err)
	}
	m.events = append(m.events, emitted...)
}

func (m *machine) newEvents(rt *rapid.T) ([]outbox.Event, []*modelEvent) {
	events := make([]outbox.Event, rapid.IntRange(1, 5).Draw(rt, "events"))
	emitted := make([]*modelEvent, len(events))
	scheduled := m.backoff && rapid.IntRange(0, 4).Draw(rt, "scheduled") == 0
	for i := range events {
		events[i] = m.h.event()
		emitted[i] = &modelEvent{max: m.maximum, status: modelWaiting}
		if m.rowMaximum {
			emitted[i].max = rapid.IntRange(1, 3).Draw(rt, "maximum of the row")
			events[i].MaxAttempts = emitted[i].max
		}
		if scheduled {
			emitted[i].due = 30 * time.Minute
			events[i].NotBefore = time.Now().Add(emitted[i].due)
		}
	}
	return events, emitted
}

func (m *machine) write(tx pgx.Tx, events []outbox.Event, emitted []*modelEvent) error {
	list, err := m.h.emitter.EmitMany(m.t.Context(), tx, events)
	if err != nil {
		return err
	}
	for i := range list {
		emitted[i].id = list[i].ID
	}
	return nil
}

// emitLate emits in a transaction that stays open: its rows will be older than some that
// were claimed before it commits.
func (m *machine) emitLate(rt *rapid.T) {
	if len(m.emits) == 2 {
		return
	}
	events, emitted := m.newEvents(rt)
	tx, err := m.h.pool.Begin(m.t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	m.emits = append(m.emits, openEmit{tx, emitted})
	if err := m.write(tx, events, emitted); err != nil {
		rt.Fatal(err)
	}
}

func (m *machine) endEmit(rt *rapid.T) {
	if len(m.emits) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.emits)-1).Draw(rt, "emit")
	open := m.emits[i]
	m.emits = slices.Delete(m.emits, i, i+1)
	end := open.tx.Rollback
	if rapid.IntRange(0, 3).Draw(rt, "commit") > 0 {
		end = open.tx.Commit
		m.events = append(m.events, open.events...)
		m.met["late commit"]++
	} else {
		m.met["rolled back emit"]++
	}
	if err := end(m.t.Context()); err != nil {
		rt.Fatal(err)
	}
}
