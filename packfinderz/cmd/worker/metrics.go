package main

import (
	"context"
	"errors"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/packfinderz/internal/metrics"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// numbers counts deliveries. It is a hook of the consumer. Only the subscription itself knows how many events wait.
type numbers struct {
	deliveries  metrics.Counter
	redelivered metrics.Counter
	letters     metrics.Counter
	latency     metrics.Latency
	age         metrics.Latency
}

func (n *numbers) OnDelivery(report consume.Report) {
	n.deliveries.Add(string(report.Outcome), 1)
	if report.Message.Attempt > 1 {
		n.redelivered.Add("", 1)
	}
	n.latency.Observe(report.Took)
	switch report.Outcome {
	case consume.Handled:
		if created := report.Message.CreatedAt; !created.IsZero() {
			n.age.Observe(max(time.Since(created), 0))
		}
	case consume.DeadLetter:
		n.letters.Add(reason(report.Err), 1)
	case consume.Again:
	}
}

// reason returns the reason that a dead letter has for an error.
func reason(err error) string {
	if terminal := (*outbox.TerminalError)(nil); errors.As(err, &terminal) {
		return string(outbox.ReasonOf(err))
	}
	return consume.ReasonMaxDeliveries
}

func (n *numbers) write(_ context.Context, w *metrics.Writer) error {
	n.deliveries.Write(w, "packfinderz_worker_deliveries_total", "Deliveries, by what became of them.", "outcome",
		string(consume.Handled), string(consume.Again), string(consume.DeadLetter))
	n.redelivered.Write(w, "packfinderz_worker_redelivered_total", "Deliveries of events that had been delivered before.", "", "")
	known := []string{consume.ReasonMaxDeliveries}
	for _, reason := range enums.ErrorReasons() {
		known = append(known, string(reason))
	}
	n.letters.Write(w, "packfinderz_worker_dead_letters_total", "Events that were given up, by reason.", "reason", known...)
	n.latency.Write(w, "packfinderz_worker_handle_seconds", "Time to handle a delivery.")
	n.age.Write(w, "packfinderz_worker_event_age_seconds", "Time from an event's emit to its effect.")
	return nil
}
