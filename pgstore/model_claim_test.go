package pgstore_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
)

func (m *machine) claim(rt *rapid.T) {
	worker := rapid.IntRange(0, modelWorkers-1).Draw(rt, "worker")
	if m.h.locks() && len(m.openClaims(worker)) == modelOpen {
		return
	}
	m.take(rt, worker, rapid.IntRange(1, 6).Draw(rt, "n"))
}

// openClaims are a worker's transactions that keep rows locked.
func (m *machine) openClaims(worker int) []*modelClaim {
	var list []*modelClaim
	for _, claim := range m.claims {
		if claim.worker == worker && !claim.closed && !claim.marked {
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
	batch, err := m.stores[worker].Claim(m.t.Context(), outbox.ClaimRequest{Limit: n})
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
	locks := m.h.locks()
	for _, e := range taken {
		m.touched[e] = !locks
		if e.exhausted() {
			m.met["exhausted"]++
			if locks && len(claim.events) > 0 {
				// Its end is written, and committed with the batch.
				m.met["buried with a batch"]++
				claim.buried = append(claim.buried, e)
				e.holder = claim
				continue
			}
			m.die(e, usedUp)
			continue
		}
		e.holder = claim
		if m.h.layout.Count == layouts.CountOnClaim {
			e.attempts++
		}
		if !locks {
			e.status = modelLeased
		}
	}
}
