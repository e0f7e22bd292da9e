package ops

import (
	"time"

	"github.com/packfinderz/outbox/pgstream"
)

// Count is a number that is not always exact.
type Count struct {
	// N is the number.
	N int64 `json:"n"`
	// AtLeast is set where counting stopped at N.
	AtLeast bool `json:"atLeast,omitempty"`
	// Estimate is set where N is the database's guess.
	Estimate bool `json:"estimate,omitempty"`
}

// Overview is how a target is doing.
type Overview struct {
	// At is when, by the database's clock.
	At time.Time `json:"at"`
	// ByState counts the events in each state that the target has.
	ByState map[State]Count `json:"byState"`
	// Backlog are the events that are neither delivered nor dead.
	Backlog Count `json:"backlog"`
	// OldestAge is the age of the oldest event of the backlog, in seconds.
	OldestSeconds float64 `json:"oldestSeconds"`
	// ByTopic, ByType and ByTenant divide the backlog, largest part first; nil where events
	// have no such field. Sampled is set where only a part of the backlog was looked at.
	ByTopic  []Share `json:"byTopic,omitempty"`
	ByType   []Share `json:"byType,omitempty"`
	ByTenant []Share `json:"byTenant,omitempty"`
	Sampled  bool    `json:"sampled,omitempty"`
	// Stopped are the topics that take nothing, with the events that wait for them, most first; of a
	// stream. Only relays know of a whole destination that takes nothing.
	Stopped []StoppedTopic `json:"stopped,omitempty"`
	// Delivered and Failed are what happened in the last minute; nil where the target cannot
	// tell.
	Delivered *Count `json:"delivered,omitempty"`
	Failed    *Count `json:"failed,omitempty"`
	// Relays are those that are alive, as far as the target can tell; see RelaysUnknown.
	Relays []Relay `json:"relays"`
	// RelaysUnknown says why the target cannot tell which relays are alive; empty if it can.
	RelaysUnknown string `json:"relaysUnknown,omitempty"`
	// OldestTransaction is the transaction of the server that has been running longest; nil if
	// none is, or we may not see it.
	OldestTransaction *pgstream.Transaction `json:"oldestTransaction,omitempty"`
	// Lag is how far each shard is behind; of a stream.
	Lag *pgstream.Lag `json:"lag,omitempty"`
}

// Share is a part of the backlog.
type Share struct {
	// Name is the topic, type or tenant; empty for none.
	Name string `json:"name"`
	// Count is how many events it has.
	Count int64 `json:"count"`
	// OldestSeconds is the age of its oldest event.
	OldestSeconds float64 `json:"oldestSeconds"`
}

// StoppedTopic is a topic that takes nothing for the moment.
type StoppedTopic struct {
	// Topic is its name.
	Topic string `json:"topic"`
	// Count is how many events wait for it.
	Count int64 `json:"count"`
	// OldestSeconds is the age of the first of them.
	OldestSeconds float64 `json:"oldestSeconds"`
	// LastError says why it takes nothing.
	LastError string `json:"lastError,omitempty"`
}

// Relay is a relay that is alive.
type Relay struct {
	// Worker is its id.
	Worker string `json:"worker"`
	// Host and PID are where it runs; StartedAt is since when. Queue tables do not know.
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// Holds is how much it has: events of a queue table, shards of a stream.
	Holds int `json:"holds"`
	// LeaseSeconds is for how long it still has them.
	LeaseSeconds float64 `json:"leaseSeconds"`
	// Waits is set while its destination takes nothing. Queue tables do not know.
	Waits bool `json:"waits,omitempty"`
}
