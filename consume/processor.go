// Package consume is what the consumers of all brokers share: what becomes of a message that
// a broker delivered. It is checked and handed to the handler of its event type; then it is
// acknowledged, delivered again, ignored, or put into the dead letters, with the reason.
//
// Each broker's module has a package consumer that receives, keeps the order that its broker has,
// and asks a Processor.
package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
)

// fatal is how many times MaxDeliveries an event is delivered before it is given up unhandled.
// Handled or not, its deliveries end; where they do not, the event may be what ends its
// consumer. An event whose deliveries have ended here is not: while something is away, it may come
// any number of times.
const fatal = 2

// rememberEnded is for how many events it is remembered, at least, that a delivery ended here.
const rememberEnded = 10_000

// minRetry keeps an event that is tried again from spinning.
const minRetry = 10 * time.Millisecond

var errNeverEnds = errors.New("it was delivered too often, and no delivery came to an end: it may be what ends its consumers")

// Delivery is a message as a broker delivered it.
type Delivery struct {
	// Message is the event. Its Attempt is the number of this delivery, from 1.
	Message outbox.Message
	// Err is set where the message is no event: what is wrong with it.
	Err error
}

// Verdict is what to tell the broker.
type Verdict struct {
	// Ack is set when the broker may forget the message.
	Ack bool
	// After is the time before a message that is not acknowledged is to be delivered again.
	After time.Duration
}

// Processor handles deliveries. It is safe for concurrent use.
type Processor struct {
	config Config
	// ended has the events of which a delivery came to an end here, and which come again. Whatever keeps
	// them from being handled, it is not that they end their consumer.
	ended *Recent[uuid.UUID]
}

// New checks the configuration and fills in the defaults.
func New(config Config) (*Processor, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Processor{config: config, ended: NewRecent[uuid.UUID](rememberEnded)}, nil
}

// Config is the processor's configuration, with the defaults filled in.
func (p *Processor) Config() Config { return p.config }

// Process handles one delivery and says what to tell the broker. It acknowledges only what is
// handled, among the dead letters, or ignored as Config.Unknown says.
func (p *Processor) Process(ctx context.Context, delivery Delivery) Verdict {
	start := time.Now()
	message := delivery.Message
	err := p.handle(ctx, &delivery)
	took := time.Since(start)
	if err == nil {
		p.ended.Forget(message.ID)
		p.report(Report{Message: message, Outcome: Handled, Took: took})
		return Verdict{Ack: true}
	}
	verdict, outcome := p.judge(ctx, &message, err)
	if verdict.Ack {
		p.ended.Forget(message.ID)
	} else {
		p.ended.Add(message.ID)
	}
	p.log(&message, outcome, err)
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
		checked := delivery.Message // a registry fills in its own topic
		if err := p.config.Registry.Check(&checked); err != nil {
			return err
		}
	}
	if err := p.config.checkType(delivery.Message.Type); err != nil {
		return err
	}
	return publish(ctx, p.config.Handlers, delivery.Message)
}

// publish hands over one message. A publisher that panics has failed; the consumer goes on.
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

// judge decides what becomes of a delivery that failed.
func (p *Processor) judge(ctx context.Context, message *outbox.Message, err error) (Verdict, Outcome) {
	again := Verdict{After: max(p.config.Retry.Delay(max(message.Attempt, 1)), minRetry)}
	var held *inbox.InProgressError
	switch {
	case ctx.Err() != nil:
		// The consumer stops: nothing is said about the message.
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
