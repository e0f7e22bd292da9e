package outbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// AckPublisher is implemented by publishers that hear of acknowledgements one by one, while the rest
// of the call is still under way. The relay uses it where RelayConfig.AttemptLevel asks for a line per
// attempt: the line of a delivery is written with its ack, so that a process which is killed in the
// middle of a batch leaves a trace of what it has sent.
type AckPublisher interface {
	Publisher
	// PublishAcked is Publish, and calls acked with the place of every message that the destination
	// has taken, once and as soon as it has. The calls may come from several goroutines at a time;
	// none comes after PublishAcked has returned.
	PublishAcked(ctx context.Context, messages []Message, acked func(place int)) []error
}

// acks writes the lines of deliveries as they are acknowledged, and remembers those that could not
// be settled: they will be published again, and the log says then that it is so.
type acks struct {
	publisher AckPublisher // nil where the lines are written after the batch

	mu        sync.Mutex
	unsettled map[uuid.UUID]int
}

// maxUnsettled bounds the deliveries that are remembered.
const maxUnsettled = 10_000

func newAcks(config *RelayConfig) *acks {
	a := &acks{unsettled: make(map[uuid.UUID]int)}
	if config.AttemptLevel != nil {
		a.publisher, _ = config.Publisher.(AckPublisher)
	}
	return a
}

// before is how often this relay has had an acknowledgement of the event that it could not settle.
func (a *acks) before(id uuid.UUID) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unsettled[id]
}

// note remembers what became of the deliveries of a batch: whether it was settled, but for the events
// that were lost.
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

// handOver calls the publisher, and writes the line of each delivery with its acknowledgement where
// both sides can.
func (r *Relay) handOver(ctx context.Context, messages []Message) []error {
	if r.acks.publisher == nil {
		return r.config.Publisher.Publish(ctx, messages)
	}
	return r.acks.publisher.PublishAcked(ctx, messages, func(place int) {
		r.logOutcome(r.config.AttemptLevel.Level(), &messages[place], &Outcome{Kind: Delivered})
	})
}

// attemptFields are what a line of every attempt has besides.
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
