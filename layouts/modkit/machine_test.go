package modkit_test

import (
	"strings"
	"time"

	"github.com/packfinderz/outbox"
)

// The states of a row. A missing row has the empty state.
const (
	pending    = "pending"
	processing = "processing"
	delivered  = "delivered"
	dead       = "dead"
)

// Actors that change rows besides workers, which are known by their ids.
const (
	producer = "the producer"
	person   = "a person"
	clock    = "the clock" // the test itself, changing the times of rows
)

// machine is the contract's state machine, with our two additions: a terminal error, and a release.
type machine struct {
	lease       time.Duration
	maxAttempts int
	retry       outbox.RetryPolicy
}

// edge is an allowed transition.
type edge struct {
	name     string
	from, to string
	holds    func(m *machine, c *change) bool
}

// edges returns all allowed transitions.
func edges() []edge {
	return []edge{
		{"enqueue", "", pending, (*machine).enqueued},
		{"claim", pending, processing, func(m *machine, c *change) bool { return c.old.due <= c.at && m.taken(c) }},
		{"reclaim", processing, processing, func(m *machine, c *change) bool { return c.ranOut() && m.taken(c) }},
		{"renew", processing, processing, (*machine).renewed},
		{"ack", processing, delivered, func(_ *machine, c *change) bool { return c.byOwner() && c.freed() && c.sameTry() && c.sameDue() }},
		{"used up", processing, dead, (*machine).usedUp},
		{"nack", processing, pending, func(m *machine, c *change) bool { return m.failed(c) && c.new.attempts < m.maxAttempts && m.delayed(c) }},
		{"last nack", processing, dead, func(m *machine, c *change) bool { return m.failed(c) && c.new.attempts >= m.maxAttempts }},
		{"terminal", processing, dead, func(m *machine, c *change) bool { return m.failed(c) && c.new.attempts < m.maxAttempts }},
		{"release", processing, pending, (*machine).released},
		{"retry by hand", dead, pending, (*machine).retried},
		{"lease ends", processing, processing, func(_ *machine, c *change) bool { return c.by == clock && c.onlyTimes() && c.sameDue() }},
		{"time passes", pending, pending, func(_ *machine, c *change) bool { return c.by == clock && c.onlyTimes() }},
	}
}

// find returns the name of the edge that a change takes; empty for none.
func (m *machine) find(c *change) string {
	if c.altered {
		return ""
	}
	for _, e := range edges() {
		if c.old.status != e.from || c.new.status != e.to || !e.holds(m, c) {
			continue
		}
		if c.new.updated == c.at || e.name == "renew" || c.by == clock {
			return e.name
		}
	}
	return ""
}

func (m *machine) enqueued(c *change) bool {
	return c.by == producer && c.new.attempts == 0 && c.new.owner == "" && c.new.until == 0 && c.new.due == c.at && c.new.lastError == ""
}

// taken reports whether a change is a claim: counted, and held by the worker for a lease.
func (m *machine) taken(c *change) bool {
	return c.old.attempts < m.maxAttempts && c.new.attempts == c.old.attempts+1 && c.sameDue() && c.sameError() &&
		c.new.owner == c.by && c.new.until == c.at+m.lease.Microseconds()
}

func (m *machine) renewed(c *change) bool {
	return c.byOwner() && c.new.owner == c.old.owner && c.new.until == c.at+m.lease.Microseconds() && c.sameTry() && c.sameDue()
}

func (m *machine) failed(c *change) bool {
	return c.byOwner() && c.freed() && c.new.attempts == c.old.attempts && c.new.lastError != ""
}

// delayed checks the next attempt against the formula.
func (m *machine) delayed(c *change) bool {
	ceiling := min(m.retry.Base<<(c.new.attempts-1), m.retry.Max).Microseconds()
	const rounding = 1
	return c.new.due >= c.at+ceiling/2-rounding && c.new.due <= c.ended+ceiling+rounding
}

func (m *machine) released(c *change) bool {
	return c.byOwner() && c.freed() && c.new.attempts == c.old.attempts-1 && c.sameDue() && c.sameError()
}

// usedUp reports whether a change moves a row to dead whose worker died in the last attempt. Anybody may do it.
func (m *machine) usedUp(c *change) bool {
	return c.ranOut() && c.freed() && c.new.attempts == c.old.attempts && c.new.attempts >= m.maxAttempts &&
		strings.HasPrefix(c.new.lastError, "the attempts are used up")
}

func (m *machine) retried(c *change) bool {
	return c.by == person && c.freed() && c.new.attempts == 0 && c.new.due == c.at && c.sameError()
}
