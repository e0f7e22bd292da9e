package pgstore_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
)

// modelStatus is where the model says that an event stands.
type modelStatus string

const (
	modelWaiting   modelStatus = "waiting"
	modelLeased    modelStatus = "leased" // run out if it has no holder
	modelDelivered modelStatus = "delivered"
	modelDead      modelStatus = "dead"
	modelGone      modelStatus = "gone"
)

// modelEvent is what the model knows of one committed event.
type modelEvent struct {
	id       uuid.UUID
	max      int
	status   modelStatus
	attempts int
	// holder is the claim that can settle the event.
	holder *modelClaim
	// due is the time until the next attempt, of which only the hours matter.
	due time.Duration
	// lastError is what the row's error begins with.
	lastError string
	// ago is how long ago it was delivered.
	ago     time.Duration
	letters []modelLetter
}

type modelLetter struct {
	ago     time.Duration
	retried bool
}

func (e *modelEvent) exhausted() bool { return e.attempts >= e.max }
func (e *modelEvent) runOut() bool    { return e.status == modelLeased && e.holder == nil }

func (e *modelEvent) claimable() bool {
	return e.status == modelWaiting && e.holder == nil && e.due <= 0
}

// modelClaim is a batch, with what the model thinks of it.
type modelClaim struct {
	worker int
	batch  outbox.Batch
	events []*modelEvent
	// buried are events whose end the claim's transaction has not committed yet.
	buried []*modelEvent
	// closed is set when that transaction is over, marked when its rows have been marked instead.
	closed, marked bool
}

func (c *modelClaim) String() string {
	return fmt.Sprintf("worker %d's claim of %d", c.worker, len(c.events))
}

// lost are the events that the claim no longer holds.
func (c *modelClaim) lost() []uuid.UUID {
	var list []uuid.UUID
	for _, e := range c.events {
		if e.holder != c {
			list = append(list, e.id)
		}
	}
	return list
}

// modelRow is a row of the table.
type modelRow struct {
	status    modelStatus
	attempts  int
	ordered   int64   // microseconds, in the order of claims
	due       float64 // seconds
	lastError string
	raw       string // all of it, and where it stands
}

// modelRowsSQL reads a layout's table.
func modelRowsSQL(h *harness) string {
	l, c := &h.layout, &h.layout.Columns
	column := func(c layouts.Column) string { return "t." + pgx.Identifier{c.Name}.Sanitize() }
	status := fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN 'delivered'", column(c.DeliveredAt))
	if l.Done == layouts.DoneStatus {
		status = fmt.Sprintf("CASE %s WHEN '%s' THEN 'delivered' WHEN '%s' THEN 'dead'", column(c.Status), l.States.Delivered, l.States.Dead)
		if l.Hold == layouts.HoldLease {
			status += fmt.Sprintf(" WHEN '%s' THEN 'leased'", l.States.Processing)
		}
	} else {
		d := &l.DeadLetter.Columns
		status += fmt.Sprintf(" WHEN EXISTS (SELECT FROM %s d WHERE d.%s = %s AND d.%s IS NULL) THEN 'dead'",
			h.letters(), d.EventID.Name, column(c.ID), d.RetriedAt.Name)
		if l.Hold == layouts.HoldLease {
			status += fmt.Sprintf(" WHEN %s IS NOT NULL THEN 'leased'", column(c.LockedUntil))
		}
	}
	ordered := column(c.CreatedAt)
	if !c.NextAttemptAt.IsZero() {
		ordered = column(c.NextAttemptAt)
	}
	return fmt.Sprintf(`SELECT %s, %s ELSE 'waiting' END, %s,
		coalesce((extract(epoch FROM %s) * 1000000)::bigint, 0),
		coalesce(extract(epoch FROM %s - now())::float8, 0), coalesce(%s, ''), t.ctid::text || t::text
		FROM %s AS t`, column(c.ID), status, column(c.Attempts), ordered, ordered, column(c.LastError), h.table())
}

// read reads all rows.
func (m *machine) read(rt *rapid.T) map[uuid.UUID]modelRow {
	rows, err := m.h.pool.Query(m.t.Context(), m.rowsSQL)
	if err != nil {
		rt.Fatalf("read the table: %v", err)
	}
	list := make(map[uuid.UUID]modelRow)
	var id uuid.UUID
	var row modelRow
	_, err = pgx.ForEachRow(rows, []any{&id, &row.status, &row.attempts, &row.ordered, &row.due, &row.lastError, &row.raw}, func() error {
		list[id] = row
		return nil
	})
	if err != nil {
		rt.Fatalf("read the table: %v", err)
	}
	return list
}

// check compares every row with the model. What the last step did not touch is what it
// was, to the byte and in its place.
func (m *machine) check(rt *rapid.T) {
	rows := m.read(rt)
	present := 0
	for _, e := range m.events {
		row, ok := rows[e.id]
		if ok != (e.status != modelGone) {
			rt.Fatalf("%s is %s, and its row is there: %t", e.id, e.status, ok)
		}
		if !ok {
			continue
		}
		present++
		if row.status != e.status {
			rt.Fatalf("%s is %s, and its row says %s: %s", e.id, e.status, row.status, row.raw)
		}
		if row.attempts != e.attempts {
			rt.Fatalf("%s has %d attempts, and its row %d: %s", e.id, e.attempts, row.attempts, row.raw)
		}
		if !strings.HasPrefix(row.lastError, e.lastError) || (e.lastError == "") != (row.lastError == "") {
			rt.Fatalf("%s has the error %q, and its row %q", e.id, e.lastError, row.lastError)
		}
		if m.backoff && e.status == modelWaiting {
			if e.due <= 0 && row.due > 0 || e.due > 0 && (row.due < (e.due-modelSlack).Seconds() || row.due > (e.due+modelSlack).Seconds()) {
				rt.Fatalf("%s is due in %s, and its row in %.0f s", e.id, e.due, row.due)
			}
		}
		if before, ok := m.rows[e.id]; ok && !m.touched[e] && before.raw != row.raw {
			rt.Fatalf("%s was not touched, and its row was\n%s\nand is\n%s", e.id, before.raw, row.raw)
		}
	}
	if present != len(rows) {
		rt.Fatalf("the table has %d rows, of which the model knows %d", len(rows), present)
	}
	m.rows, m.touched = rows, make(map[*modelEvent]bool)
	m.checkStats(rt)
}

// checkStats compares the counts that a layout knows exactly. A row lock does not show.
func (m *machine) checkStats(rt *rapid.T) {
	stats, err := m.admin.Stats(m.t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	var due, dead, exhausted int64
	for _, e := range m.events {
		switch {
		case e.status == modelDead:
			dead++
		case e.status == modelWaiting && e.exhausted():
			exhausted++
		case e.status == modelWaiting && e.due <= 0:
			due++
		}
	}
	if stats.Due != due || stats.Dead != dead || stats.Exhausted != exhausted {
		rt.Fatalf("stats say %d due, %d dead, %d exhausted; the model %d, %d, %d",
			stats.Due, stats.Dead, stats.Exhausted, due, dead, exhausted)
	}
}

// pick are the events for which is is true, in the order in which they were emitted.
func (m *machine) pick(is func(*modelEvent) bool) []*modelEvent {
	var list []*modelEvent
	for _, e := range m.events {
		if is(e) {
			list = append(list, e)
		}
	}
	return list
}

// inOrder sorts events as claims do.
func (m *machine) inOrder(list []*modelEvent) []*modelEvent {
	slices.SortFunc(list, func(a, b *modelEvent) int {
		if x, y := m.rows[a.id].ordered, m.rows[b.id].ordered; x != y {
			return int(x - y)
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	return list
}

// die makes an event dead in the model.
func (m *machine) die(e *modelEvent, lastError string) {
	e.status, e.holder, e.lastError = modelDead, nil, lastError
	if m.h.layout.DeadLetter != nil {
		e.letters = append(e.letters, modelLetter{})
	}
	m.touched[e] = true
}

// usedUp is what the error of an event begins with whose last attempt nobody settled.
const usedUp = "the attempts are used up"

// settled applies one outcome to an event that the claim holds.
func (m *machine) settled(e *modelEvent, outcome outbox.Outcome) {
	onFailure := m.h.layout.Count == layouts.CountOnFailure
	m.touched[e] = true
	marked := e.holder.marked
	e.holder = nil
	switch outcome.Kind {
	case outbox.Delivered:
		e.status, e.ago = modelDelivered, 0
	case outbox.Failed:
		e.status, e.lastError = modelWaiting, outcome.Error
		if e.due = outcome.Delay; !m.backoff {
			e.due = 0
		}
		if onFailure {
			e.attempts++
		}
	case outbox.Died:
		if onFailure && !outcome.Uncounted {
			e.attempts++
		}
		m.die(e, outcome.Error)
	case outbox.Released:
		e.status = modelWaiting
		e.due = min(e.due, 0)
		if !onFailure {
			e.attempts--
		}
		if m.h.locks() && !marked {
			delete(m.touched, e)
		}
	}
}
