package consume

import (
	"time"

	"github.com/packfinderz/outbox"
)

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
	// Ignored means that its type is unknown, and was acknowledged unhandled; see IgnoreUnknown.
	Ignored Outcome = "ignored"
	// DeadLetter means that it was given up and is in the dead letters.
	DeadLetter Outcome = "dead_letter"
)

func (p *Processor) log(message *outbox.Message, outcome Outcome, err error) {
	var text string
	switch outcome {
	case Ignored:
		return
	case DeadLetter:
		text = "delivery failed; the event is a dead letter"
	default:
		text = "delivery failed; it comes again"
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
