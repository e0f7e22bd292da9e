package chaos

// The judgement: what must have happened to every event, given what did. It knows nothing of processes or databases, so
// that it can be shown to fail on fabricated histories.

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Incarnation is one life of a relay process.
type Incarnation struct {
	// Name is for people: the relay and the number of its life.
	Name string
	// Fault is the number of the fault that hit this life, counted from 1 in the order of time. Zero means that none
	// did, or one that excuses nothing.
	Fault int
}

// Delivery is an event that arrived.
type Delivery struct {
	ID uuid.UUID
	By *Incarnation
	// Key is whose event it is, and Version its place among those of its key: they rise in the order of commits. An
	// event with version zero has no place.
	Key     string
	Version int64
	// At is when it arrived; zero if that is not known.
	At time.Time
}

// History is what happened in one run.
type History struct {
	// Committed are the events that must arrive, and when each was known to be committed. No other may arrive, least of
	// all one that was rolled back.
	Committed map[uuid.UUID]time.Time
	// Deliveries are what arrived. Those with a version are in the order of their arrival, whoever delivered them.
	Deliveries []Delivery
	// Spoiled are lines that cannot be read.
	Spoiled []string
}

// Limits are what a run may do to events.
type Limits struct {
	// PerFault is how many surplus deliveries one fault excuses, unless ByFault says.
	PerFault int
	ByFault  map[int]int
	// Spoiled is how many unreadable lines may be left: a killed process may have written half of one.
	Spoiled int
}

// Report is what a history amounts to.
type Report struct {
	Events      int
	Lost        []uuid.UUID // committed and never arrived
	Ghosts      []uuid.UUID // arrived and never committed
	Twice       int         // events that arrived more than once
	PerFault    map[int]int // surplus deliveries by fault
	Unexplained []string    // surplus deliveries that no fault excuses
	Inversions  []string    // first deliveries of events that came after a later one of their key
	Spoiled     []string    // lines that cannot be read
	MaxLag      time.Duration
}

// Judge sorts the deliveries out.
//
// A relay that publishes an event and does not live to settle it leaves it to another life. That one begins to publish
// it after the fault, so that its own fault, if it meets one, is a later one. Therefore all deliveries of an event but
// that with the latest fault are surplus, each due to the fault of the life that made it; a life without a fault counts
// as the latest of all.
func (h *History) Judge() *Report {
	report := &Report{Events: len(h.Committed), PerFault: make(map[int]int), Spoiled: h.Spoiled}
	arrived := make(map[uuid.UUID][]*Incarnation, len(h.Committed))
	for _, delivery := range h.Deliveries {
		arrived[delivery.ID] = append(arrived[delivery.ID], delivery.By)
	}
	for id := range h.Committed {
		if len(arrived[id]) == 0 {
			report.Lost = append(report.Lost, id)
		}
	}
	for id, lives := range arrived {
		if _, committed := h.Committed[id]; !committed {
			report.Ghosts = append(report.Ghosts, id)
		}
		if len(lives) > 1 {
			report.Twice++
			report.charge(id, lives)
		}
	}
	h.judgeOrder(report)
	return report
}

// judgeOrder looks at the first delivery of each event: those of a key must come in the order of their versions, and
// none may have taken long. What comes again comes late by nature, and says nothing.
func (h *History) judgeOrder(report *Report) {
	seen := make(map[uuid.UUID]bool, len(h.Committed))
	last := make(map[string]*Delivery)
	for i := range h.Deliveries {
		delivery := &h.Deliveries[i]
		if seen[delivery.ID] {
			continue
		}
		seen[delivery.ID] = true
		if at, committed := h.Committed[delivery.ID]; committed && !delivery.At.IsZero() {
			report.MaxLag = max(report.MaxLag, delivery.At.Sub(at))
		}
		if delivery.Version == 0 {
			continue
		}
		if before := last[delivery.Key]; before != nil && before.Version > delivery.Version {
			report.Inversions = append(report.Inversions, fmt.Sprintf("%s: version %d by %s after version %d by %s",
				delivery.Key, delivery.Version, delivery.By.Name, before.Version, before.By.Name))
			continue
		}
		last[delivery.Key] = delivery
	}
}

func (r *Report) charge(id uuid.UUID, lives []*Incarnation) {
	last := 0
	for i, life := range lives {
		if when(life) > when(lives[last]) {
			last = i
		}
	}
	for i, life := range lives {
		switch {
		case i == last:
		case life.Fault == 0:
			r.Unexplained = append(r.Unexplained, fmt.Sprintf("%s by %s", id, names(lives)))
		default:
			r.PerFault[life.Fault]++
		}
	}
}

func when(life *Incarnation) int {
	if life.Fault == 0 {
		return math.MaxInt
	}
	return life.Fault
}

func names(lives []*Incarnation) string {
	list := make([]string, len(lives))
	for i, life := range lives {
		list[i] = life.Name
	}
	return strings.Join(list, ", ")
}

// MaxPerFault is the most surplus deliveries that any one fault made.
func (r *Report) MaxPerFault() int {
	most := 0
	for _, surplus := range r.PerFault {
		most = max(most, surplus)
	}
	return most
}

// Problems are the promises that were broken, one line each.
func (r *Report) Problems(limits Limits) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(r.Lost) > 0 {
		add("%d of %d committed events never arrived, such as %s", len(r.Lost), r.Events, r.Lost[0])
	}
	if len(r.Ghosts) > 0 {
		add("%d events arrived that were never committed, such as %s", len(r.Ghosts), r.Ghosts[0])
	}
	if len(r.Unexplained) > 0 {
		add("%d surplus deliveries are due to no fault, such as %s", len(r.Unexplained), r.Unexplained[0])
	}
	for fault, surplus := range r.PerFault {
		most, given := limits.ByFault[fault]
		if !given {
			most = limits.PerFault
		}
		if surplus > most {
			add("fault %d made %d surplus deliveries; at most %d were in flight", fault, surplus, most)
		}
	}
	if len(r.Inversions) > 0 {
		add("%d events came after a later one of their key, such as %s", len(r.Inversions), r.Inversions[0])
	}
	if len(r.Spoiled) > limits.Spoiled {
		add("%d lines cannot be read; at most %d were cut off by a kill", len(r.Spoiled), limits.Spoiled)
	}
	for _, line := range r.Spoiled {
		if len(r.Lost) > 0 {
			add("what is lost may be in %s", line)
		}
	}
	return problems
}
