// Package consume is shared by the consumers of all brokers. It decides what happens to a delivered message: it
// checks the message and hands it to the handler of its event type; then the message is acknowledged, delivered
// again, ignored, or made a dead letter, with the reason.
//
// Each broker has a package consumer, which receives messages, keeps their order and asks a Processor.
package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/internal/consuming"
)

// fatal times MaxDeliveries is how often an event is delivered before it is made a dead letter unhandled. Every
// delivery should end, handled or not. If none does, the event may be what kills its consumers. An event whose
// deliveries end here is no such event: during an outage it may be delivered any number of times.
const fatal = 2

// rememberEnded is how many events with an ended delivery are remembered at least.
const rememberEnded = 10_000

// minRetry keeps a retried event from spinning.
const minRetry = 10 * time.Millisecond

var errNeverEnds = errors.New("it was delivered too often, and no delivery came to an end: it may be what ends its consumers")

// Delivery is a message from a broker.
type Delivery struct {
	// Message is the event. Its Attempt is the number of this delivery, from 1.
	Message outbox.Message
	// Err is set if the message is not an event: it says what is wrong.
	Err error
}

// Verdict is the answer to the broker.
type Verdict struct {
	// Ack is set if the broker may forget the message.
	Ack bool
	// After is the delay before an unacknowledged message is delivered again.
	After time.Duration
}

// Processor handles deliveries. It is safe for concurrent use.
type Processor struct {
	config Config
	// ended counts the events with a delivery that ended here and that come again. Whatever keeps them from being
	// handled, they do not kill their consumer.
	ended *consuming.Recent[uuid.UUID]
}

// New returns a processor.
func New(config Config) (*Processor, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Processor{config: config, ended: consuming.NewRecent[uuid.UUID](rememberEnded)}, nil
}

// Config returns the processor's configuration, with defaults.
func (p *Processor) Config() Config { return p.config }

// Process handles one delivery and returns the answer to the broker. It acknowledges only what was handled, became
// a dead letter, or is ignored as Config.Unknown says.
func (p *Processor) Process(ctx context.Context, delivery Delivery) Verdict {
	start := time.Now()
	message := delivery.Message
	err := p.handle(ctx, &delivery)
	took := time.Since(start)
	verdict, outcome := Verdict{Ack: true}, Handled
	if err != nil {
		verdict, outcome = p.judge(ctx, &message, err)
		p.log(&message, outcome, err)
	}
	if verdict.Ack {
		p.ended.Forget(message.ID)
	} else {
		p.ended.Add(message.ID)
	}
	p.report(Report{Message: message, Outcome: outcome, Err: err, Took: took})
	return verdict
}

func (p *Processor) handle(ctx context.Context, delivery *Delivery) error {
	if delivery.Err != nil {
		return outbox.Terminal(delivery.Err)
	}
	if p.config.DeadLetters != nil && delivery.Message.Attempt > fatal*p.config.MaxDeliveries && p.ended.Count(delivery.Message.ID) == 0 {
		return errNeverEnds
	}
	if p.config.Registry != nil {
		checked := delivery.Message // a registry sets its own topic
		if err := p.config.Registry.Check(&checked); err != nil {
			return err
		}
	}
	if err := p.config.checkType(delivery.Message.Type); err != nil {
		return err
	}
	return publish(ctx, p.config.Handlers, delivery.Message)
}

// publish hands over one message. It turns a panic into an error, and the consumer goes on.
func publish(ctx context.Context, to outbox.Publisher, message outbox.Message) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("publisher panicked: %v", value)
		}
	}()
	errs := to.Publish(ctx, []outbox.Message{message})
	if len(errs) != 1 {
		return fmt.Errorf("the publisher answered for %d of 1 messages", len(errs))
	}
	return errs[0]
}

// judge decides what to do with a failed delivery.
func (p *Processor) judge(ctx context.Context, message *outbox.Message, err error) (Verdict, Outcome) {
	again := Verdict{After: max(p.config.Retry.Delay(max(message.Attempt, 1)), minRetry)}
	var held *inbox.InProgressError
	switch {
	case ctx.Err() != nil:
		// The consumer is stopping: this says nothing about the message.
		return Verdict{}, Again
	case errors.As(err, &held):
		return Verdict{After: max(held.Left, minRetry)}, Again
	case errors.Is(err, inbox.ErrInProgress), errors.Is(err, outbox.ErrNotAttempted):
		return again, Again
	}
	class := outbox.Classify(err)
	if isUnknown(err) {
		switch p.config.Unknown {
		case IgnoreUnknown:
			return Verdict{Ack: true}, Ignored
		case RetryUnknown:
			class = outbox.ClassRetryable
		}
	}
	if p.config.DeadLetters == nil || class == outbox.ClassUnavailable || class != outbox.ClassTerminal && message.Attempt < p.config.MaxDeliveries {
		return again, Again
	}
	if failed := p.bury(ctx, message, class, err); failed != nil {
		p.config.Logger.Error("a dead letter could not be written; the event is delivered again", "event_id", message.ID, "error", outbox.ErrorText(failed))
		return again, Again
	}
	return Verdict{Ack: true}, DeadLetter
}
