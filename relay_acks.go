package outbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// AckPublisher is implemented by publishers that learn of acknowledgements one by one during a call. The relay uses
// it if RelayConfig.AttemptLevel asks for a line per attempt: it then logs each delivery with its acknowledgement,
// so that a process killed in the middle of a batch leaves a trace of what it sent.
type AckPublisher interface {
	Publisher
	// PublishAcked is Publish, and calls acked with the index of every message as soon as the destination has
	// acknowledged it, once each. Several goroutines may call acked at once. No call comes after PublishAcked has
	// returned.
	PublishAcked(ctx context.Context, messages []Message, acked func(place int)) []error
}

// acks logs deliveries as they are acknowledged, and remembers those that could not be settled: they will be
// published again, and the log then says so.
type acks struct {
	publisher AckPublisher // nil if deliveries are logged after the batch

	mu        sync.Mutex
	unsettled map[uuid.UUID]int
}

// maxUnsettled bounds how many deliveries are remembered.
const maxUnsettled = 10_000

func newAcks(config *RelayConfig) *acks {
	a := &acks{unsettled: make(map[uuid.UUID]int)}
	if config.AttemptLevel != nil {
		a.publisher, _ = config.Publisher.(AckPublisher)
	}
	return a
}

// before returns how many acknowledgements of the event this relay could not settle.
func (a *acks) before(id uuid.UUID) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unsettled[id]
}

// note records which deliveries of a batch could not be settled. If the batch was settled, only the lost events
// were not.
func (a *acks) note(messages []Message, outcomes []Outcome, settled bool, lost []uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range messages {
		id := messages[i].ID
		switch {
		case settled && !slices.Contains(lost, id):
			delete(a.unsettled, id)
		case outcomes[i].Kind == Delivered && (a.unsettled[id] > 0 || len(a.unsettled) < maxUnsettled):
			a.unsettled[id]++
		}
	}
}

// handOver calls the publisher. It logs each delivery with its acknowledgement if the publisher supports that.
func (r *Relay) handOver(ctx context.Context, messages []Message) []error {
	if r.acks.publisher == nil {
		return r.config.Publisher.Publish(ctx, messages)
	}
	return r.acks.publisher.PublishAcked(ctx, messages, func(place int) {
		r.logOutcome(r.config.AttemptLevel.Level(), &messages[place], &Outcome{Kind: Delivered})
	})
}

// attemptFields returns the extra fields of a line per attempt.
func (r *Relay) attemptFields(m *Message, outcome *Outcome) []slog.Attr {
	if r.config.AttemptLevel == nil {
		return nil
	}
	fields := []slog.Attr{slog.String("outcome", outcome.Kind.String())}
	if n := r.acks.before(m.ID); n > 0 {
		fields = append(fields, slog.Int("acknowledged_before", n))
	}
	return fields
}
