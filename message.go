package outbox

import (
	"context"
	"errors"
	"strconv"
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
	// ReplayedAt is when somebody asked for the event to be published again; zero for its own
	// delivery.
	ReplayedAt time.Time
	// Invalid is why the row cannot be read as an event, if it cannot: it is dead then, and not
	// published. The other fields are what could be read.
	Invalid error
}

// DuplicateID is what a broker's own guard against duplicates is to know the message by: the
// event's id and, of a replay, when it was asked for. The guard would swallow it otherwise.
func (m *Message) DuplicateID() string {
	if m.ReplayedAt.IsZero() {
		return m.ID.String()
	}
	return m.ID.String() + "-" + strconv.FormatInt(m.ReplayedAt.UnixMicro(), 36)
}

// Publisher hands messages to a broker.
//
// It is given a batch in the order in which it was claimed and answers with one error
// per message, in the same order: nil once the broker has acknowledged that message,
// and only then. Wrap an error with Terminal, Unavailable or Unclear to say more than "try
// this one again"; see Classify. What was not sent when ctx ends is answered with
// ErrNotAttempted. It must not change or keep the messages.
type Publisher interface {
	Publish(ctx context.Context, messages []Message) []error
}

// Pinger is implemented by publishers that can ask whether the destination is there. The relay
// asks at its start, after messages that got no answer, while the destination is unavailable, and
// when nothing was published for a while. Without a Pinger it tries a few messages instead.
type Pinger interface {
	// Ping reports whether the destination can be reached and takes our credentials. An error
	// that is marked with Misconfigured is one that waiting alone will not mend.
	Ping(ctx context.Context) error
}

// TopicPinger is implemented by publishers that can ask for one topic.
type TopicPinger interface {
	// PingTopic reports whether messages can be published to the topic; see TopicMissing.
	PingTopic(ctx context.Context, topic string) error
}

// Sequencer is implemented by publishers that keep the order of a key by themselves: once a
// message has failed, they answer the later messages of the same key in the batch with
// ErrNotAttempted and do not send them. On a store that keeps order the relay hands such a
// publisher whole batches; any other is given at most one message of a key at a time.
type Sequencer interface {
	// KeepsOrder reports whether the publisher does so as it is configured now.
	KeepsOrder() bool
}

// ErrNotAttempted is a publisher's answer for a message that it did not send, because an
// earlier one of its key failed or the time was up. The relay gives the message back, uncounted.
var ErrNotAttempted = errors.New("not attempted: an earlier event of its key failed, or the time was up")
