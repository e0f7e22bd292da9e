package outbox

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Message is a claimed event on its way to the broker.
type Message struct {
	// Event is the event as emitted. Its MaxAttempts is the effective maximum: the row's own, or the relay's.
	Event
	// CreatedAt is when the event was emitted, by the database's clock.
	CreatedAt time.Time
	// Attempt is the number of this attempt, from 1.
	Attempt int
	// ReplayedAt is when a person asked for this replay; zero for the event's own delivery.
	ReplayedAt time.Time
	// Invalid is set if the row cannot be read as an event. The event is then dead and not published. The other
	// fields hold what could be read.
	Invalid error
}

// DuplicateID is the broker's deduplication key: the event's id and, for a replay, the time of the request. Without
// that time the broker would drop the replay as a duplicate.
func (m *Message) DuplicateID() string {
	if m.ReplayedAt.IsZero() {
		return m.ID.String()
	}
	return m.ID.String() + "-" + strconv.FormatInt(m.ReplayedAt.UnixMicro(), 36)
}

// Publisher hands messages to a broker.
//
// Publish gets a batch in claimed order and returns one error per message, in the same order: nil only after the
// broker has acknowledged that message. Wrap an error with Terminal, Unavailable or Unclear to say more than "try
// this one again"; see Classify. For messages that were not sent when ctx ends, return ErrNotAttempted. Publish
// must not change or keep the messages.
type Publisher interface {
	Publish(ctx context.Context, messages []Message) []error
}

// Pinger is implemented by publishers that can check whether the destination is available. The relay pings at its
// start, after messages without an answer, while the destination is unavailable, and after a while without a
// publish. For a publisher without Ping it tries a few messages instead.
type Pinger interface {
	// Ping checks that the destination can be reached and accepts our credentials. An error marked with
	// Misconfigured is one that waiting alone will not fix.
	Ping(ctx context.Context) error
}

// TopicPinger is implemented by publishers that can check a single topic.
type TopicPinger interface {
	// PingTopic checks that messages can be published to the topic; see TopicMissing.
	PingTopic(ctx context.Context, topic string) error
}

// Sequencer is implemented by publishers that keep the order of a key themselves: after a message fails, they do
// not send the later messages of its key in the batch and answer them with ErrNotAttempted. On a store that keeps
// order, the relay hands whole batches to such a publisher. Any other publisher gets at most one message of a key
// at a time.
type Sequencer interface {
	// KeepsOrder reports whether the publisher, as configured, keeps the order of a key.
	KeepsOrder() bool
}

// ErrNotAttempted is a publisher's answer for a message it did not send, because an earlier one of its key failed
// or because time ran out. The relay releases the message, uncounted.
var ErrNotAttempted = errors.New("not attempted: an earlier event of its key failed, or the time was up")
