package modkit_test

import (
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
)

// The steps of TestStates. Each takes one step and returns how many rows it must change.

func (s *states) enqueue(rt *rapid.T) int {
	events := make([]outbox.Event, rapid.IntRange(1, 4).Draw(rt, "events"))
	for i := range events {
		events[i] = layouttest.Event("modkit")
		events[i].DedupeKey = uuid.NewString()
	}
	for _, emitted := range s.emit(rt, events) {
		if emitted.AlreadyEnqueued {
			rt.Fatalf("%s was there already", emitted.ID)
		}
		s.ids = append(s.ids, emitted.ID)
	}
	return len(events)
}

// enqueueAgain enqueues an event whose id exists, in whatever state it is.
func (s *states) enqueueAgain(rt *rapid.T) int {
	event := layouttest.Event("modkit")
	event.ID = s.ids[rapid.IntRange(0, len(s.ids)-1).Draw(rt, "event")]
	if emitted := s.emit(rt, []outbox.Event{event}); !emitted[0].AlreadyEnqueued {
		rt.Fatalf("%s was enqueued twice", event.ID)
	}
	return 0
}

func (s *states) emit(rt *rapid.T, events []outbox.Event) (emitted []outbox.Emitted) {
	err := s.emitter.InTx(s.Context(), s.hands[producer], func(tx pgx.Tx) (err error) {
		emitted, err = s.emitter.EmitMany(s.Context(), tx, events)
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
	return emitted
}

func (s *states) claim(rt *rapid.T) int {
	worker := rapid.IntRange(0, statesWorkers-1).Draw(rt, "worker")
	// A new store searches from the start; other tests check where an older one begins.
	s.open(rt, worker)
	n := rapid.IntRange(1, 4).Draw(rt, "n")
	var free int
	err := s.pool.QueryRow(s.Context(), `SELECT count(*) FROM modkit_outbox_events
		WHERE status = 'pending' AND next_attempt_at <= now() OR status = 'processing' AND locked_until < now()`).Scan(&free)
	if err != nil {
		rt.Fatal(err)
	}
	messages, err := s.modules[worker].ClaimBatch(s.Context(), modkit.ClaimCfg{BatchSize: n})
	if err != nil {
		rt.Fatal(err)
	}
	for _, message := range messages {
		claim := &held{worker, message}
		s.claims = append(s.claims, claim)
		s.holders[message.ID] = claim
	}
	return min(n, free)
}

// settle settles a message, which succeeds if and only if the claim still holds it.
func (s *states) settle(rt *rapid.T, settle func(*modkit.Module, modkit.ClaimedMessage) error) int {
	claims := s.claims
	if rapid.IntRange(0, 3).Draw(rt, "any claim") > 0 {
		claims = slices.DeleteFunc(slices.Clone(claims), func(claim *held) bool { return s.holders[claim.message.ID] != claim })
	}
	if len(claims) == 0 {
		return 0
	}
	claim := claims[rapid.IntRange(0, len(claims)-1).Draw(rt, "claim")]
	err := settle(s.modules[claim.worker], claim.message)
	if s.holders[claim.message.ID] != claim {
		if !errors.Is(err, outbox.ErrLeaseLost) {
			rt.Fatalf("%s was settled by a claim that had lost it: %v", claim.message.ID, err)
		}
		s.met["refused"]++
		return 0
	}
	if err != nil {
		rt.Fatal(err)
	}
	delete(s.holders, claim.message.ID)
	return 1
}

func (s *states) ack(rt *rapid.T) int {
	return s.settle(rt, func(module *modkit.Module, m modkit.ClaimedMessage) error { return module.Ack(s.Context(), m) })
}

func (s *states) nack(rt *rapid.T) int { return s.nackWith(rt, errors.New("no")) }

func (s *states) terminal(rt *rapid.T) int {
	return s.nackWith(rt, outbox.Terminal(errors.New("never")))
}

func (s *states) nackWith(rt *rapid.T, cause error) int {
	return s.settle(rt, func(module *modkit.Module, m modkit.ClaimedMessage) error { return module.Nack(s.Context(), m, cause) })
}

func (s *states) release(rt *rapid.T) int {
	return s.settle(rt, func(module *modkit.Module, m modkit.ClaimedMessage) error { return module.Release(s.Context(), m) })
}

// crash makes a worker forget what it holds.
func (s *states) crash(rt *rapid.T) {
	worker := rapid.IntRange(0, statesWorkers-1).Draw(rt, "worker")
	s.claims = slices.DeleteFunc(s.claims, func(claim *held) bool { return claim.worker == worker })
}

// endLeases ends some leases. Their holders lose the rows, because the proof changes.
func (s *states) endLeases(rt *rapid.T) int {
	var ids []uuid.UUID
	for _, id := range s.ids {
		if claim := s.holders[id]; claim != nil && rapid.Bool().Draw(rt, "ends") {
			ids = append(ids, id)
			delete(s.holders, id)
		}
	}
	pgtest.Exec(s, s.hands[clock], `UPDATE modkit_outbox_events SET locked_until = locked_until - interval '2 hours' WHERE id = ANY($1)`, ids)
	return len(ids)
}

func (s *states) passTime(rt *rapid.T) int {
	tag, err := s.hands[clock].Exec(s.Context(), `
		UPDATE modkit_outbox_events SET next_attempt_at = next_attempt_at - interval '2 hours' WHERE status = 'pending' AND next_attempt_at > now()`)
	if err != nil {
		rt.Fatal(err)
	}
	return int(tag.RowsAffected())
}

func (s *states) sweep(rt *rapid.T) int {
	worker := rapid.IntRange(0, statesWorkers-1).Draw(rt, "worker")
	swept, err := s.table(rt, s.pools[worker], s.names[worker]).Sweep(s.Context())
	if err != nil {
		rt.Fatal(err)
	}
	return int(swept)
}

// retry asks for some events to be retried; only dead ones are.
func (s *states) retry(rt *rapid.T) int {
	var ids []uuid.UUID
	want := 0
	for _, id := range s.ids {
		if rapid.Bool().Draw(rt, "retry") {
			ids = append(ids, id)
			if s.last[id].status == dead {
				want++
			}
		}
	}
	if _, err := s.table(rt, s.hands[person], uuid.New()).Retry(s.Context(), ids...); err != nil {
		rt.Fatal(err)
	}
	return want
}
