package pgstream

import "github.com/packfinderz/outbox"

// events are what a batch has to say to the relay: those to publish, and those that the claim found with their
// attempts used up.
type events struct{ messages, exhausted []outbox.Message }

// Messages are the events to publish.
func (e *events) Messages() []outbox.Message { return e.messages }

// Exhausted are events whose attempts were used up before this claim.
func (e *events) Exhausted() []outbox.Message { return e.exhausted }

// Reclaimed is not known: a shard that was taken over starts from its cursor.
func (e *events) Reclaimed() int { return 0 }

// takeExhausted takes the events that were found with their attempts used up, to report each once. The caller holds
// the lock.
func (s *Store) takeExhausted() (list []outbox.Message) {
	list, s.exhausted = s.exhausted, nil
	return list
}
