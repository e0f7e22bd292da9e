package pgstore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
)

// crash ends a worker's process. The next one may have its name, and the old one's
// batches may be settled after all: it was only stopped.
func (m *machine) crash(rt *rapid.T) {
	worker := rapid.IntRange(0, modelWorkers-1).Draw(rt, "worker")
	m.forget(worker)
	if rapid.Bool().Draw(rt, "new name") {
		m.workers[worker] = uuid.New()
	}
	m.open(rt, worker)
	m.met["crash"]++
}

// forget ends a worker's transactions, as a process does that ends.
func (m *machine) forget(worker int) {
	if !m.h.locks() {
		return
	}
	for _, claim := range m.openClaims(worker) {
		claim.batch.Abandon()
		m.rollBack(claim)
	}
}

// rollBack puts everything back to before the claim.
func (m *machine) rollBack(claim *modelClaim) {
	claim.closed = true
	for _, e := range slices.Concat(claim.events, claim.buried) {
		e.holder = nil
	}
}

// expire ends some leases. Where rows are only locked the server ends a worker's sessions instead.
func (m *machine) expire(rt *rapid.T) {
	if m.h.layout.Hold == layouts.HoldRowLock || m.h.locks() && rapid.Bool().Draw(rt, "locks") {
		worker := rapid.IntRange(0, modelWorkers-1).Draw(rt, "worker")
		pgtest.Exec(m.t, m.h.pool, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = $1 AND state = 'idle in transaction'`, workerName(worker))
		for _, claim := range m.openClaims(worker) {
			m.rollBack(claim)
		}
		return
	}
	if claim := m.anyClaim(rt); claim != nil && rapid.Bool().Draw(rt, "of one claim") {
		m.runOut(claim.events[:rapid.IntRange(1, len(claim.events)).Draw(rt, "part")])
		return
	}
	m.runOut(m.pick(func(e *modelEvent) bool {
		return e.holder != nil && rapid.Bool().Draw(rt, "runs out")
	}))
}

// runOut takes an hour off the leases of some events.
func (m *machine) runOut(events []*modelEvent) {
	column := m.h.layout.Columns.LockedUntil
	switch m.h.layout.Hold {
	case layouts.HoldLease:
	case layouts.HoldDefer:
		column = m.h.layout.Columns.NextAttemptAt
	case layouts.HoldRowLock:
		return
	}
	var ids []uuid.UUID
	for _, e := range events {
		ids = append(ids, e.id)
		switch {
		case m.h.layout.Hold == layouts.HoldLease:
			m.touched[e] = m.touched[e] || e.holder != nil
			e.holder = nil
		case e.status == modelWaiting && e.due > 0:
			m.touched[e] = true
			e.due -= time.Hour
			e.holder = nil
		}
	}
	pgtest.Exec(m.t, m.h.pool, fmt.Sprintf(`UPDATE %s SET %[2]s = %[2]s - interval '1 hour' WHERE %[2]s > now() AND %[3]s = ANY($1)`,
		m.h.table(), pgx.Identifier{column.Name}.Sanitize(), m.h.layout.Columns.ID.Name), ids)
}

// age lets hours pass. Open transactions, whose locks would be in the way, end before.
func (m *machine) age(rt *rapid.T) {
	for len(m.emits) > 0 {
		m.endEmit(rt)
	}
	for i := range m.stores {
		m.forget(i)
	}
	m.older(time.Duration(rapid.IntRange(1, 3).Draw(rt, "hours")) * time.Hour)
}

// older lets time pass for every row, though not for leases.
func (m *machine) older(by time.Duration) {
	m.h.Age(m.t, by)
	if m.h.layout.DeadLetter != nil {
		m.h.ageLetters(m.t, by)
	}
	for _, e := range m.events {
		m.touched[e] = true
		e.due -= by
		e.ago += by
		if m.h.layout.Hold == layouts.HoldDefer {
			e.holder = nil // the due time was the mark
		}
		for i := range e.letters {
			e.letters[i].ago += by
		}
	}
}

func (m *machine) sweep(rt *rapid.T) {
	worker := rapid.IntRange(0, modelWorkers-1).Draw(rt, "worker")
	n, err := m.stores[worker].Sweep(m.t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	want := m.pick(func(e *modelEvent) bool { return e.runOut() && e.exhausted() })
	if n != int64(len(want)) {
		rt.Fatalf("swept %d events; %d had run out on their last attempt", n, len(want))
	}
	for _, e := range want {
		m.die(e, usedUp)
		m.met["swept"]++
	}
}

func (m *machine) purge(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "later") {
		m.age(rt)
		m.check(rt)
	}
	half := 30 * time.Minute
	purge := outbox.Purge{
		Retention: time.Duration(rapid.IntRange(0, 3).Draw(rt, "retention"))*time.Hour + half,
		BatchSize: rapid.IntRange(1, 3).Draw(rt, "step"),
	}
	if m.h.layout.DeadLetter != nil && rapid.Bool().Draw(rt, "letters") {
		purge.DeadLetterRetention = time.Duration(rapid.IntRange(0, 3).Draw(rt, "retention of letters"))*time.Hour + half
	}
	var want int64
	for _, e := range m.events {
		if e.status == modelDelivered && e.ago > purge.Retention {
			e.status = modelGone
			want++
			m.met["purged"]++
		}
		if purge.DeadLetterRetention == 0 {
			continue
		}
		e.letters = slices.DeleteFunc(e.letters, func(letter modelLetter) bool {
			old := letter.ago > purge.DeadLetterRetention
			if old {
				want++
				m.met["purged letter"]++
				if !letter.retried {
					e.status = modelGone // it would come back to life
				}
			}
			return old
		})
	}
	dry := purge
	dry.DryRun = true
	for _, purge := range []outbox.Purge{dry, purge} {
		if n, err := m.admin.Purge(m.t.Context(), purge); err != nil || n != want {
			rt.Fatalf("purged %d rows, want %d: %v", n, want, err)
		}
	}
}

func (m *machine) retry(rt *rapid.T) {
	var ids []uuid.UUID
	asked := m.pick(func(*modelEvent) bool { return rapid.Bool().Draw(rt, "retry") })
	for _, e := range asked {
		ids = append(ids, e.id)
	}
	retried, err := m.admin.Retry(m.t.Context(), ids...)
	if err != nil {
		rt.Fatal(err)
	}
	want := 0
	for _, e := range asked {
		if e.status != modelDead {
			continue
		}
		want++
		if !slices.Contains(retried, e.id) {
			rt.Fatalf("%s is dead, and was not retried", e.id)
		}
		e.status, e.attempts, e.due = modelWaiting, 0, 0
		for i := range e.letters {
			e.letters[i].retried = true
		}
		m.touched[e] = true
		m.met["retried"]++
	}
	if len(retried) != want {
		rt.Fatalf("retried %d events; %d were dead", len(retried), want)
	}
}
