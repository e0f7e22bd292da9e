package outbox

import (
	"context"
	"time"
)

// Message is a claimed event on its way to the broker.
type Message struct {
	// Event is the event as it was emitted. MaxAttempts is the maximum in force: the
	// row's own, or the relay's.
	Event
	// CreatedAt is when the event was emitted, by the database's clock.
	CreatedAt time.Time
	// Attempt is the number of this attempt, from 1.
	Attempt int
}

// Publisher hands messages to a broker.
//
// It is given a batch in the order in which it was claimed and answers with one error
// per message, in the same order: nil once the broker has acknowledged that message,
// and only then. Wrap an error with Terminal or Unavailable to say more than "try this
// one again"; see Classify. It must not change or keep the messages.
type Publisher interface {
	Publish(ctx context.Context, messages []Message) []error
}

// Pinger is implemented by publishers that can ask whether the broker is there. The
// relay pings a broker that was unavailable until it answers; without a Pinger it tries
// a single message instead.
type Pinger interface {
	Ping(ctx context.Context) error
}
