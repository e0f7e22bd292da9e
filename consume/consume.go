// Package consume is what the consumers of all brokers share: what becomes of a message that
// a broker delivered. It is checked and handed to the handler of its event type; then it is
// acknowledged, delivered again, or put into the dead letters, with the reason.
//
// Each broker's module has a package consumer that receives, keeps the order that its broker has,
// and asks a Processor.
package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
)

// DefaultMaxDeliveries is how often an event is delivered before it is a dead letter.
const DefaultMaxDeliveries = 5

// fatal is how many times MaxDeliveries an event is delivered before it is given up unhandled.
// Handled or not, its deliveries end; where they do not, the event may be what ends its
// consumer. An event whose deliveries have ended here is not: while something is away, it may come
// any number of times.
const fatal = 2

var errNeverEnds = errors.New("it was delivered too often, and no delivery came to an end: it may be what ends its consumers")

// Config says what a consumer does with its messages.
type Config struct {
	// Handlers has the handler of each event type. It is a *handlers.Set, or any other publisher:
	// a message is handled when it is published without an error. Handlers that must have their
	// effect once are wrapped in an inbox.
	Handlers outbox.Publisher
	// Registry, if set, checks every message before it is handled, as the relay does.
	Registry outbox.Registry
	// MaxDeliveries is after how many deliveries an event that fails is a dead letter. Default 5.
	MaxDeliveries int
	// DeadLetters takes the events that are given up, at DeadLetterTopic. Without it nothing is
	// given up: an event that fails is delivered again without end.
	DeadLetters     outbox.Publisher
	DeadLetterTopic string
	// Retry is the time before an event that failed is delivered again, where the broker can
	// wait. Default: 1 s, doubling to 5 min.
	Retry outbox.RetryPolicy
	// Hooks are told what became of every delivery; see Hook.
	Hooks []any
	// Logger has a line for every delivery that failed. Default slog.Default().
	Logger *slog.Logger
}

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

// Hook is told what became of a delivery.
type Hook interface {
	OnDelivery(report Report)
}

// Report is what became of one delivery.
type Report struct {
	Message outbox.Message
	// Outcome is what it was settled as, and Err why it was not handled.
	Outcome Outcome
	Err     error
	// Took is how long it was handled.
	Took time.Duration
}

// Outcome is what became of a delivery.
type Outcome string

// The outcomes of a delivery.
const (
	// Handled means that its effect has happened, now or before.
	Handled Outcome = "handled"
	// Again means that it failed and will be delivered again.
	Again Outcome = "again"
	// DeadLetter means that it was given up and is in the dead letters.
	DeadLetter Outcome = "dead_letter"
)

// Processor handles deliveries. It is safe for concurrent use.
type Processor struct {
	config Config
	ended  ended
}

// New checks the configuration and fills in the defaults.
func New(config Config) (*Processor, error) {
	switch {
	case config.Handlers == nil:
		return nil, errors.New("outbox: Config.Handlers is missing")
	case (config.DeadLetters == nil) != (config.DeadLetterTopic == ""):
		return nil, errors.New("outbox: Config.DeadLetters and Config.DeadLetterTopic go together")
	case config.MaxDeliveries < 0:
		return nil, fmt.Errorf("outbox: Config.MaxDeliveries is %d; it must be above zero", config.MaxDeliveries)
	}
	if config.MaxDeliveries == 0 {
		config.MaxDeliveries = DefaultMaxDeliveries
	}
	if config.Retry.Base == 0 {
		config.Retry.Base = time.Second
	}
	if config.Retry.Max == 0 {
		config.Retry.Max = max(5*time.Minute, config.Retry.Base)
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Processor{config: config}, nil
}

// Config is the processor's configuration, with the defaults filled in.
func (p *Processor) Config() Config { return p.config }

// Process handles one delivery and says what to tell the broker. It acknowledges only what is
// handled or among the dead letters.
func (p *Processor) Process(ctx context.Context, delivery Delivery) Verdict {
	start := time.Now()
	message := delivery.Message
	err := p.handle(ctx, &delivery)
	took := time.Since(start)
	if err == nil {
		p.ended.forget(message.ID)
		p.report(Report{Message: message, Outcome: Handled, Took: took})
		return Verdict{Ack: true}
	}
	verdict, outcome := p.judge(ctx, &message, err)
	if verdict.Ack {
		p.ended.forget(message.ID)
	} else {
		p.ended.add(message.ID)
	}
	p.log(&message, outcome, err)
	p.report(Report{Message: message, Outcome: outcome, Err: err, Took: took})
	return verdict
}

func (p *Processor) handle(ctx context.Context, delivery *Delivery) error {
	if delivery.Err != nil {
		return outbox.Terminal(delivery.Err)
	}
	if p.config.DeadLetters != nil && delivery.Message.Attempt > fatal*p.config.MaxDeliveries && !p.ended.has(delivery.Message.ID) {
		return errNeverEnds
	}
	if p.config.Registry != nil {
		checked := delivery.Message // a registry fills in its own topic
		if err := p.config.Registry.Check(&checked); err != nil {
			return err
		}
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
	again := Verdict{After: p.config.Retry.Delay(max(message.Attempt, 1))}
	var held *inbox.InProgressError
	switch {
	case ctx.Err() != nil:
		// The consumer stops: nothing is said about the message.
		return Verdict{}, Again
	case errors.As(err, &held):
		return Verdict{After: held.Left}, Again
	case errors.Is(err, inbox.ErrInProgress), errors.Is(err, outbox.ErrNotAttempted):
		return again, Again
	}
	class := outbox.Classify(err)
	if p.config.DeadLetters == nil || class == outbox.ClassUnavailable || class != outbox.ClassTerminal && message.Attempt < p.config.MaxDeliveries {
		return again, Again
	}
	if failed := p.bury(ctx, message, class, err); failed != nil {
		p.config.Logger.Error("a dead letter could not be written; the event is delivered again", "event_id", message.ID, "error", outbox.ErrorText(failed))
		return again, Again
	}
	return Verdict{Ack: true}, DeadLetter
}

func (p *Processor) log(message *outbox.Message, outcome Outcome, err error) {
	text := "delivery failed; it comes again"
	if outcome == DeadLetter {
		text = "delivery failed; the event is a dead letter"
	}
	p.config.Logger.Warn(text, "event_id", message.ID, "event_type", message.Type, "aggregate_type", message.AggregateType,
		"aggregate_id", message.AggregateID, "attempt", message.Attempt, "error", outbox.ErrorText(err))
}

func (p *Processor) report(report Report) {
	for _, hook := range p.config.Hooks {
		if h, ok := hook.(Hook); ok {
			h.OnDelivery(report)
		}
	}
}
