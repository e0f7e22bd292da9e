package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/ops"
)

// deliveries counts what a drain delivers.
type deliveries struct{ n atomic.Int64 }

func (d *deliveries) OnSettle(report outbox.BatchReport) {
	for i := range report.Outcomes {
		if report.Outcomes[i].Kind == outbox.Delivered && !slices.Contains(report.Lost, report.Messages[i].ID) {
			d.n.Add(1)
		}
	}
}

// leftStates are the states of events that a drain can leave. Those that need a person come first.
var leftStates = []ops.State{
	ops.StateDead, ops.StateHeld, ops.StateWaiting, ops.StateStopped, ops.StateRetrying, ops.StateScheduled, ops.StateDue,
}

// left counts the undelivered events by state, and the rows in no known state.
func (o *opened) left(ctx context.Context) (left map[ops.State]int64, strays int64, err error) {
	stats, err := o.store.Stats(ctx)
	if err != nil {
		return nil, 0, err
	}
	left = map[ops.State]int64{
		ops.StateDue: stats.Due + stats.Exhausted, ops.StateScheduled: stats.Scheduled, ops.StateRetrying: stats.Retrying,
		ops.StateHeld: stats.Held, ops.StateDead: stats.Dead,
	}
	if o.parked != nil {
		parked, err := o.parked(ctx)
		if err != nil {
			return nil, 0, err
		}
		// A stream counts events that wait behind another one as retried, and does not count held ones.
		left[ops.StateWaiting], left[ops.StateStopped] = parked["waiting"], parked["stopped"]
		left[ops.StateRetrying] = max(0, stats.Retrying-parked["waiting"]-parked["stopped"])
		left[ops.StateHeld] += parked["held"]
	}
	maps.DeleteFunc(left, func(_ ops.State, n int64) bool { return n == 0 })
	return left, max(0, stats.Strays), nil
}

// printDrained prints what a drain did and what it left, because a successful drain does not mean that everything
// is delivered. Rows that no relay will ever claim are an error.
func (a *app) printDrained(ctx context.Context, on *running, delivered int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	left, strays, failed := on.from.left(ctx)
	answers := *a
	if strings.HasPrefix(dest.Name(on.to), "stdout:") {
		answers.Out = a.Err // nothing comes between the events
	}
	doc := struct {
		Delivered int64               `json:"delivered"`
		Left      map[ops.State]int64 `json:"left"`
		Strays    int64               `json:"strays,omitempty"`
		Error     string              `json:"error,omitempty"`
	}{Delivered: delivered, Left: left, Strays: strays}
	if failed != nil {
		doc.Error = outbox.ErrorText(failed)
	}
	if err := answers.answer(doc, "%s\n", drainedLine(delivered, left, strays, failed)); err != nil {
		return err
	}
	if strays > 0 {
		return fmt.Errorf("left for ever: %s in no state that a relay knows; outbox doctor says how to find them", plural(strays, "row"))
	}
	return nil
}

func drainedLine(delivered int64, left map[ops.State]int64, strays int64, failed error) string {
	line := "delivered " + plural(delivered, "event")
	if failed != nil {
		return line + "; what is left cannot be counted: " + message(failed)
	}
	var parts []string
	for _, state := range leftStates {
		if n := left[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if strays > 0 {
		parts = append(parts, fmt.Sprintf("%d in no known state", strays))
	}
	return line + "; left: " + cmp.Or(strings.Join(parts, ", "), "nothing")
}
