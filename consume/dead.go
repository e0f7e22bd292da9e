package consume

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// The headers of a dead letter, besides those of the message.
const (
	// DeadReason says why it is dead, in a word, and DeadError in the error's words.
	DeadReason = wire.DeadReason
	DeadError  = "dead_letter_error"
	// DeadTopic is where it came from, and DeadDeliveries how often it was delivered.
	DeadTopic      = "dead_letter_topic"
	DeadDeliveries = "dead_letter_deliveries"
)

// ReasonMaxDeliveries means that every delivery of the event failed.
const ReasonMaxDeliveries = "max_deliveries"

// maxDeadError is how many bytes of an error a dead letter carries: as many as every broker can.
const maxDeadError = 500

// bury publishes a message as a dead letter: unchanged, with the reason in headers.
func (p *Processor) bury(ctx context.Context, message *outbox.Message, class outbox.Class, cause error) error {
	reason := ReasonMaxDeliveries
	if class == outbox.ClassTerminal {
		reason = string(outbox.ReasonOf(cause))
	}
	letter := *message
	letter.Topic = p.config.DeadLetterTopic
	if letter.ID == uuid.Nil {
		letter.ID = uuid.New() // it is no event, but a publisher needs an id
	}
	if letter.Payload == nil {
		letter.Payload = []byte{}
	}
	letter.Headers = make(map[string]string)
	maps.Copy(letter.Headers, message.Headers)
	letter.Headers[DeadReason] = reason
	letter.Headers[DeadError] = oneLine(outbox.ErrorText(cause))
	letter.Headers[DeadTopic] = message.Topic
	letter.Headers[DeadDeliveries] = strconv.Itoa(message.Attempt)
	return publish(ctx, p.config.DeadLetters, letter)
}

// oneLine makes a text fit for a header: printable ASCII, and short.
func oneLine(text string) string {
	line := strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case r < ' ' || r > '~':
			return '?'
		}
		return r
	}, text)
	return line[:min(len(line), maxDeadError)]
}
