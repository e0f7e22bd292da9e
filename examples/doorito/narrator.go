package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// narrator prints what happens. It is a hook of the relay.
type narrator struct {
	mu  sync.Mutex
	out io.Writer
	// ended gets the events that are delivered or failed for good, as far as there is room.
	ended chan ending
}

// ending is the end of an event.
type ending struct {
	id   uuid.UUID
	kind outbox.OutcomeKind
}

func newNarrator(out io.Writer) *narrator {
	return &narrator{out: out, ended: make(chan ending, 100)}
}

func (n *narrator) printf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = fmt.Fprintf(n.out, format+"\n", args...)
}

// OnSettle tells what became of events.
func (n *narrator) OnSettle(report outbox.BatchReport) {
	for i, message := range report.Messages {
		outcome := report.Outcomes[i]
		event := fmt.Sprintf("  %s of %s %s", message.Type, message.AggregateType, message.AggregateID)
		switch outcome.Kind {
		case outbox.Delivered:
			n.printf("%s: delivered", event)
			n.end(ending{message.ID, outcome.Kind})
		case outbox.Failed:
			n.printf("%s: attempt %d of %d failed, the next in %s: %s", event,
				message.Attempt, message.MaxAttempts, outcome.Delay.Round(time.Millisecond), outcome.Error)
		case outbox.Died:
			n.printf("%s: failed for good after %d attempts: %s", event, message.Attempt, outcome.Error)
			n.printf("  POST /events/%s/retry brings it back", message.ID)
			n.end(ending{message.ID, outcome.Kind})
		case outbox.Released:
			n.printf("%s: given back", event)
		}
	}
}

func (n *narrator) end(end ending) {
	select {
	case n.ended <- end:
	default: // nobody is on a tour
	}
}
