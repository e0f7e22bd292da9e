package pgstore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/pgstore"
)

func (m *machine) claim(rt *rapid.T) {
	worker := rapid.IntRange(0, modelWorkers-1).Draw(rt, "worker")
	if m.h.layout.Hold == pgstore.HoldRowLock && len(m.openClaims(worker)) == modelOpen {
		return
	}
	m.take(rt, worker, rapid.IntRange(1, 6).Draw(rt, "n"))
}

// openClaims are a worker's transactions under row locks.
func (m *machine) openClaims(worker int) []*modelClaim {
	var list []*modelClaim
	for _, claim := range m.claims {
		if claim.worker == worker && !claim.closed {
			list = append(list, claim)
		}
	}
	return list
}

// take claims and compares what comes with what the model says is free. It returns nil
// for an empty batch.
func (m *machine) take(rt *rapid.T, worker, n int) *modelClaim {
	due := m.inOrder(m.pick((*modelEvent).claimable))
	ranOut := m.pick((*modelEvent).runOut)
	batch, err := m.stores[worker].Claim(m.t.Context(), n)
	if err != nil {
		rt.Fatal(err)
	}
	claim := &modelClaim{worker: worker, batch: batch}
	m.claims = append(m.claims, claim)

	messages, exhausted := batch.Messages(), batch.Exhausted()
	if got := len(messages) + len(exhausted); got > n {
		rt.Fatalf("claimed %d events, %d of them with used-up attempts; asked for %d", got, len(exhausted), n)
	}
	var taken []*modelEvent
	for i := range messages {
		e := m.taken(rt, &messages[i], false)
		claim.events = append(claim.events, e)
		taken = append(taken, e)
	}
	for i := range exhausted {
		taken = append(taken, m.taken(rt, &exhausted[i], true))
	}
	m.complete(rt, worker, n, due, ranOut, taken)
	m.fresh[worker] = false
	m.hold(claim, taken)
	if len(messages) == 0 {
		claim.closed = true
		batch.Abandon()
		m.claims = m.claims[:len(m.claims)-1]
	}
	if len(taken) == 0 {
		return nil
	}
	return claim
}

// taken checks one event of a claim against the model.
func (m *machine) taken(rt *rapid.T, message *outbox.Message, exhausted bool) *modelEvent {
	i := slices.IndexFunc(m.events, func(e *modelEvent) bool { return e.id == message.ID })
	if i < 0 {
		rt.Fatalf("claimed %s, which was not emitted", message.ID)
	}
	e := m.events[i]
	if !e.claimable() && !e.runOut() {
		rt.Fatalf("claimed %s, which is %s, due in %s, held by %v", e.id, e.status, e.due, e.holder)
	}
	if e.exhausted() != exhausted {
		rt.Fatalf("claimed %s with %d of %d attempts as one with used-up attempts: %t", e.id, e.attempts, e.max, exhausted)
	}
	if !exhausted && (message.Attempt != e.attempts+1 || message.MaxAttempts != e.max) {
		rt.Fatalf("claimed %s for attempt %d of %d; it is attempt %d of %d", e.id, message.Attempt, message.MaxAttempts, e.attempts+1, e.max)
	}
	return e
}

// complete checks what a claim has left behind. A store may find less than there is, as
// it begins where it ended last; but it finds something before it says that there is
// nothing, and a new store finds everything, the oldest first.
func (m *machine) complete(rt *rapid.T, worker, n int, due, ranOut, taken []*modelEvent) {
	if len(taken) == 0 && len(due) > 0 {
		rt.Fatalf("claimed nothing while %d events are due, such as %s", len(due), due[0].id)
	}
	seen := make(map[*modelEvent]bool)
	fromDue := 0
	for _, e := range taken {
		if seen[e] {
			rt.Fatalf("claimed %s twice", e.id)
		}
		seen[e] = true
		if e.status == modelWaiting {
			fromDue++
		} else {
			m.met["claimed after it ran out"]++
		}
	}
	if !m.fresh[worker] {
		return
	}
	m.met["scan of everything"]++
	if want := min(n, len(due)+len(ranOut)); len(taken) != want {
		rt.Fatalf("a new store claimed %d events of %d due and %d run out; asked for %d", len(taken), len(due), len(ranOut), n)
	}
	for _, e := range due[:fromDue] {
		if !seen[e] {
			rt.Fatalf("a new store passed over %s, which is older than what it claimed", e.id)
		}
	}
}

// hold puts what was claimed into the claim's hands, or ends it.
func (m *machine) hold(claim *modelClaim, taken []*modelEvent) {
	hold := m.h.layout.Hold
	for _, e := range taken {
		m.touched[e] = hold != pgstore.HoldRowLock
		if e.exhausted() {
			m.met["exhausted"]++
			if hold == pgstore.HoldRowLock && len(claim.events) > 0 {
				// Its dead letter is written, and committed with the batch.
				m.met["buried with a batch"]++
				claim.buried = append(claim.buried, e)
				e.holder = claim
				continue
			}
			m.die(e, usedUp)
			continue
		}
		e.holder = claim
		if m.h.layout.Count == pgstore.CountOnClaim {
			e.attempts++
		}
		switch hold {
		case pgstore.HoldLease:
			e.status = modelLeased
		case pgstore.HoldDefer:
			e.due = modelLease
		case pgstore.HoldRowLock:
		}
	}
}

// anyClaim draws a claim: mostly one that holds something, or else one that was settled
// or lost.
func (m *machine) anyClaim(rt *rapid.T) *modelClaim {
	claims := m.claims
	if rapid.IntRange(0, 3).Draw(rt, "any claim") > 0 {
		claims = nil
		for _, claim := range m.claims {
			if !claim.closed && len(claim.lost()) < len(claim.events) {
				claims = append(claims, claim)
			}
		}
	}
	if len(claims) == 0 {
		return nil
	}
	return rapid.SampledFrom(claims).Draw(rt, "claim")
}

func (m *machine) settle(rt *rapid.T) {
	claim := m.anyClaim(rt)
	if claim == nil {
		return
	}
	kinds := []outbox.OutcomeKind{outbox.Failed, outbox.Failed, outbox.Released, outbox.Delivered, outbox.Died}
	if !rapid.Bool().Draw(rt, "mixed") {
		kinds = []outbox.OutcomeKind{rapid.SampledFrom(kinds).Draw(rt, "kind")}
	}
	outcomes := make([]outbox.Outcome, len(claim.events))
	for i := range outcomes {
		m.errors++
		outcomes[i] = outbox.Outcome{Kind: rapid.SampledFrom(kinds).Draw(rt, "outcome")}
		switch outcomes[i].Kind {
		case outbox.Failed:
			outcomes[i].Error = fmt.Sprintf("failure %d.", m.errors)
			outcomes[i].Delay = rapid.SampledFrom([]time.Duration{0, 0, 30 * time.Minute, 90 * time.Minute}).Draw(rt, "delay")
		case outbox.Died:
			outcomes[i].Error, outcomes[i].Reason = fmt.Sprintf("death %d.", m.errors), outbox.ReasonTerminal
			outcomes[i].Uncounted = rapid.Bool().Draw(rt, "uncounted")
		case outbox.Delivered, outbox.Released:
		}
	}
	m.finish(rt, claim, outcomes)
}

// finish settles a claim: what it holds changes, what it has lost is refused.
func (m *machine) finish(rt *rapid.T, claim *modelClaim, outcomes []outbox.Outcome) {
	if len(claim.events) == 0 {
		return
	}
	want := claim.lost()
	lost, err := claim.batch.Settle(m.t.Context(), outcomes)
	claim.batch.Abandon()
	if claim.closed {
		errLeaseLost(rt, claim, "a settle", err)
		m.met["refused"]++
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	sorted := func(list []uuid.UUID) []string {
		var texts []string
		for _, id := range list {
			texts = append(texts, id.String())
		}
		slices.Sort(texts)
		return texts
	}
	if !slices.Equal(sorted(lost), sorted(want)) {
		rt.Fatalf("a settle of %s was refused for %v; it had lost %v", claim, lost, want)
	}
	switch {
	case len(lost) == 0:
		m.met["settled"]++
	case len(lost) < len(claim.events):
		m.met["partly refused"]++
	default:
		m.met["refused"]++
	}
	for i, e := range claim.events {
		if e.holder == claim {
			m.settled(e, outcomes[i])
		}
	}
	for _, e := range claim.buried {
		m.die(e, usedUp)
	}
	claim.buried = nil
	claim.closed = m.h.layout.Hold == pgstore.HoldRowLock
}

func (m *machine) renew(rt *rapid.T) {
	claim := m.anyClaim(rt)
	if claim == nil {
		return
	}
	err := claim.batch.Renew(m.t.Context())
	if claim.closed || len(claim.lost()) == len(claim.events) {
		errLeaseLost(rt, claim, "a renewal", err)
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	m.met["renewed"]++
	for _, e := range claim.events {
		if e.holder == claim && m.h.layout.Hold != pgstore.HoldRowLock {
			m.touched[e] = true
		}
	}
}

// crash ends a worker's process. The next one may have its name, and the old one's
// batches may be settled after all: it was only stopped.
func (m *machine) crash(rt *rapid.T) {
	worker := rapid.IntRange(0, modelWorkers-1).Draw(rt, "worker")
	if m.h.layout.Hold == pgstore.HoldRowLock {
		m.forget(worker)
	}
	if rapid.Bool().Draw(rt, "new name") {
		m.workers[worker] = uuid.New()
	}
	m.open(rt, worker)
	m.met["crash"]++
}

// forget ends a worker's transactions under row locks, as a process does that ends.
func (m *machine) forget(worker int) {
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

// expire ends some leases. Under row locks the server ends a worker's sessions instead.
func (m *machine) expire(rt *rapid.T) {
	if m.h.layout.Hold == pgstore.HoldRowLock {
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
	if m.h.layout.Hold == pgstore.HoldDefer {
		column = m.h.layout.Columns.NextAttemptAt
	}
	var ids []uuid.UUID
	for _, e := range events {
		ids = append(ids, e.id)
		switch m.h.layout.Hold {
		case pgstore.HoldLease:
			m.touched[e] = m.touched[e] || e.holder != nil
			e.holder = nil
		case pgstore.HoldDefer:
			if e.status == modelWaiting && e.due > 0 {
				m.touched[e] = true
				e.due -= time.Hour
				e.holder = nil
			}
		case pgstore.HoldRowLock:
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
	if m.h.layout.Hold == pgstore.HoldRowLock {
		for i := range m.stores {
			m.forget(i)
		}
	}
	m.older(time.Duration(rapid.IntRange(1, 3).Draw(rt, "hours")) * time.Hour)
}

// older lets time pass for every row, though not for leases.
func (m *machine) older(by time.Duration) {
	m.h.Age(m.t, by)
	if m.h.layout.DeadLetter != nil {
		pgtest.Exec(m.t, m.h.pool, fmt.Sprintf(`
			ALTER TABLE %[1]s DISABLE TRIGGER USER;
			UPDATE %[1]s SET %[2]s = %[2]s - make_interval(secs => %[3]f);
			ALTER TABLE %[1]s ENABLE TRIGGER USER`,
			m.h.letters(), m.h.layout.DeadLetter.Columns.FailedAt.Name, by.Seconds()))
	}
	for _, e := range m.events {
		m.touched[e] = true
		e.due -= by
		e.ago += by
		if m.h.layout.Hold == pgstore.HoldDefer {
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
