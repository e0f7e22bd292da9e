package admin

import (
	"net/http"

	"github.com/packfinderz/outbox/ops"
)

type overview struct {
	*ops.Overview
	// Verdict is the state of things in a sentence; Mood is its colour: good, note or bad.
	Verdict, Mood string
	// Dead is set if there are dead events.
	Dead   bool
	States []stateCount
	Charts []chartCard
	Shares []shares
}

type stateCount struct {
	State ops.State
	Count ops.Count
}

type chartCard struct {
	Title, Value, Unit, Top string
	// Name is the name of its colour.
	Name string
	// Unknown says why there is nothing to draw.
	Unknown string
	chart
}

// shares are the backlog divided by a field.
type shares struct {
	// Title and Field name it, for people and in addresses.
	Title, Field string
	Rows         []shareRow
}

type shareRow struct {
	ops.Share
	// Width is its percentage of the largest share.
	Width float64
}

func (c *Console) overviewPage(w http.ResponseWriter, r *request) error {
	found, samples, err := r.outbox.samples.watch(r.Context())
	if err != nil {
		return err
	}
	content := newOverview(found, samples, r.outbox.about.States)
	if r.URL.Query().Get("part") == "live" {
		return c.renderPart(w, c.newView(r, "overview", "Overview", content), http.StatusOK, "live")
	}
	return c.render(w, r, http.StatusOK, "overview", "Overview", content)
}

func newOverview(found *ops.Overview, samples []sample, states []ops.State) *overview {
	o := &overview{Overview: found, Dead: found.ByState[ops.StateDead].N > 0}
	o.Verdict, o.Mood = verdict(found)
	for _, state := range states {
		o.States = append(o.States, stateCount{state, found.ByState[state]})
	}
	draw := func(value func(sample) float64) chart { return newChart(samples, found.At, value) }
	card := func(title, name, unit string, value *ops.Count, of func(sample) float64) chartCard {
		made := chartCard{Title: title, Name: name, Unit: unit, chart: draw(of)}
		if value == nil {
			made.Unknown = "The table does not keep this."
			return made
		}
		made.Value, made.Top = count(*value), number(int64(made.chart.Top))
		return made
	}
	age := chartCard{Title: "Oldest waiting", Name: "age", Value: seconds(found.OldestSeconds), chart: draw(func(s sample) float64 { return s.Oldest })}
	age.Top = seconds(age.chart.Top)
	o.Charts = []chartCard{
		card("Delivered", "delivered", "per minute", found.Delivered, func(s sample) float64 { return float64(s.Delivered) }),
		card("Backlog", "backlog", "waiting", &found.Backlog, func(s sample) float64 { return float64(s.Backlog) }),
		age,
		card("Failures", "failed", "per minute", found.Failed, func(s sample) float64 { return float64(s.Failed) }),
	}
	for _, by := range []struct {
		title, field string
		list         []ops.Share
	}{{"by type", "type", found.ByType}, {"by topic", "topic", found.ByTopic}, {"by tenant", "tenantId", found.ByTenant}} {
		if len(by.list) == 0 || len(by.list) == 1 && by.list[0].Name == "" {
			continue // nothing waits, or nothing that waits has one
		}
		table := shares{Title: by.title, Field: by.field}
		largest := max(by.list[0].Count, 1)
		for _, share := range by.list {
			table.Rows = append(table.Rows, shareRow{share, 100 * float64(share.Count) / float64(largest)})
		}
		o.Shares = append(o.Shares, table)
	}
	return o
}

// waitsLong is from when, in seconds, a backlog without a relay or an old event is worth mentioning.
const waitsLong = 60

// verdict describes the state of things, the worst first.
func verdict(o *ops.Overview) (text, mood string) {
	dead := o.ByState[ops.StateDead]
	waits := o.Backlog.N > 0 && o.OldestSeconds > waitsLong
	switch {
	case o.Backlog.N > 0 && len(o.Relays) == 0 && o.RelaysUnknown == "":
		return "Events wait and no relay is alive.", "bad"
	case waits && dead.N > 0:
		return "The oldest event has waited " + seconds(o.OldestSeconds) + ", and " + countOf(dead, "is dead", "are dead") + ".", "bad"
	case waits:
		return "The oldest event has waited " + seconds(o.OldestSeconds) + ".", "note"
	case dead.N > 0:
		return countOf(dead, "is dead and waits", "are dead and wait") + " for a decision.", "bad"
	case o.Backlog.N == 0:
		return "Everything is delivered.", "good"
	}
	return "Events flow.", "good"
}

// countOf begins a sentence about a number of events.
func countOf(c ops.Count, one, many string) string {
	if c.N == 1 && !c.AtLeast {
		return "1 event " + one
	}
	return count(c) + " events " + many
}
