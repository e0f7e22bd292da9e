package outboxtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
)

// RequireEmitted fails the test unless each wanted event was emitted exactly once. It returns the events it found, in the order
// of want.
//
// A wanted event is a pattern: its zero fields match anything. A payload that is a JSON object matches every object that has
// its members, with equal values; other members do not matter. Other JSON has to be equal, whatever its spelling, and what is not
// JSON byte for byte. Headers match if they have those that are wanted. An event given twice has to be there
// twice. Events that match no pattern are not looked at.
//
// All events that tx sees count: those of its own, and those that were committed before, delivered or not.
func RequireEmitted(t testing.TB, tx Tx, target outbox.Target, want ...outbox.Event) []outbox.Event {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("RequireEmitted was given no event to look for; RequireNotEmitted without one means none at all")
	}
	have, name := emitted(t, tx, target)
	found := assign(want, have)
	var problems []string
	for i, place := range found {
		if place < 0 {
			problems = append(problems, fmt.Sprintf("not emitted to %s: %s", name, describe(&want[i]))+nearMisses(&want[i], have))
		}
	}
	for place := range surplus(want, have, found) {
		problems = append(problems, fmt.Sprintf("emitted to %s once too often: event %d", name, place+1))
	}
	if len(problems) > 0 {
		t.Fatal(strings.Join(append(problems, list(name, have)), "\n"))
	}
	events := make([]outbox.Event, len(want))
	for i, place := range found {
		events[i] = have[place]
	}
	return events
}

// RequireNotEmitted fails the test if an event was emitted that matches one of the patterns, or any event at all if there are
// none. See RequireEmitted for what matches, and which events count.
func RequireNotEmitted(t testing.TB, tx Tx, target outbox.Target, unwanted ...outbox.Event) {
	t.Helper()
	if len(unwanted) == 0 {
		unwanted = []outbox.Event{{}}
	}
	have, name := emitted(t, tx, target)
	var problems []string
	for i := range have {
		if matchesAny(unwanted, &have[i]) {
			problems = append(problems, fmt.Sprintf("emitted to %s, and should not be: event %d", name, i+1))
		}
	}
	if len(problems) > 0 {
		t.Fatal(strings.Join(append(problems, list(name, have)), "\n"))
	}
}

// assign gives each wanted event an event of its own, or -1, so that as many as possible have one: of two patterns that
// match the same event, one may match others, too.
func assign(want, have []outbox.Event) []int {
	found := make([]int, len(want))
	owner := make(map[int]int) // of an event
	var place func(i int, tried map[int]bool) bool
	place = func(i int, tried map[int]bool) bool {
		for j := range have {
			if tried[j] || difference(&want[i], &have[j]) != "" {
				continue
			}
			tried[j] = true
			if other, taken := owner[j]; !taken || place(other, tried) {
				owner[j], found[i] = i, j
				return true
			}
		}
		return false
	}
	for i := range want {
		found[i] = -1
		place(i, make(map[int]bool))
	}
	return found
}

// surplus yields the events that a pattern matches and none has.
func surplus(want, have []outbox.Event, found []int) func(yield func(place int) bool) {
	assigned := make(map[int]bool)
	for _, place := range found {
		assigned[place] = true
	}
	return func(yield func(int) bool) {
		for i := range have {
			if !assigned[i] && matchesAny(want, &have[i]) && !yield(i) {
				return
			}
		}
	}
}

func matchesAny(patterns []outbox.Event, event *outbox.Event) bool {
	for i := range patterns {
		if difference(&patterns[i], event) == "" {
			return true
		}
	}
	return false
}

// nearMisses says in what the events of the wanted type differ from the pattern.
func nearMisses(want *outbox.Event, have []outbox.Event) string {
	var b strings.Builder
	for i := range have {
		if difference(&outbox.Event{Type: want.Type}, &have[i]) != "" {
			continue
		}
		if differs := difference(want, &have[i]); differs != "" {
			fmt.Fprintf(&b, "\n    event %d: %s", i+1, differs)
		}
	}
	return b.String()
}
