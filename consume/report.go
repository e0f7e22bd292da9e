package consume

import (
	"time"

	"github.com/packfinderz/outbox"
)

// Hook observes deliveries.
type Hook interface {
	OnDelivery(report Report)
}

// Report describes one delivery.
type Report struct {
	Message outbox.Message
	// Outcome is how it was settled, and Err is why it was not handled.
	Outcome Outcome
	Err     error
	// Took is how long its handling took.
	Took time.Duration
}

// Outcome is the outcome of a delivery.
type Outcome string

// The outcomes of a delivery.
const (
	// Handled means that the effect has happened, now or before.
	Handled Outcome = "handled"
	// Again means that it failed and will be delivered again.
	Again Outcome = "again"
	// Ignored means that its type is unknown and it was acknowledged unhandled; see IgnoreUnknown.
	Ignored Outcome = "ignored"
	// DeadLetter means that it became a dead letter.
	DeadLetter Outcome = "dead_letter"
)

func (p *Processor) log(message *outbox.Message, outcome Outcome, err error) {
	if outcome == Ignored {
		return
	}
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
