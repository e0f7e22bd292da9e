package pgstore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
)

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
	m.bury(claim)
	claim.closed = m.h.locks() && !claim.marked
}

// bury ends what a claim's transaction has ended, once it is committed.
func (m *machine) bury(claim *modelClaim) {
	for _, e := range claim.buried {
		m.die(e, usedUp)
	}
	claim.buried = nil
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
	if m.h.layout.Hold == layouts.HoldRowLock {
		return
	}
	if m.h.locks() && !claim.marked {
		claim.marked = true
		m.bury(claim)
	}
	for _, e := range claim.events {
		if e.holder != claim {
			continue
		}
		m.touched[e] = true
		if claim.marked {
			e.due = modelLease
		}
	}
}
