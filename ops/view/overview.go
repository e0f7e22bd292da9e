package view

import (
	"time"

	"github.com/packfinderz/outbox/pgstream"
)

// Count is a number of events that may be inexact.
type Count struct {
	// N is the number.
	N int64 `json:"n"`
	// AtLeast is set if counting stopped at N.
	AtLeast bool `json:"atLeast,omitempty"`
	// Estimate is set if N is the database's estimate.
	Estimate bool `json:"estimate,omitempty"`
}

// Overview is the present state of an outbox.
type Overview struct {
	// At is the time of the overview by the database's clock.
	At time.Time `json:"at"`
	// ByState counts the events in each state of the outbox.
	ByState map[State]Count `json:"byState"`
	// Backlog counts the events that are neither delivered nor dead.
	Backlog Count `json:"backlog"`
	// OldestSeconds is the age of the oldest event of the backlog, in seconds.
	OldestSeconds float64 `json:"oldestSeconds"`
	// ByTopic, ByType and ByTenant divide the backlog, largest part first; nil if events have no such
	// field. Sampled is set if they cover only a part of the backlog.
	ByTopic  []Share `json:"byTopic,omitempty"`
	ByType   []Share `json:"byType,omitempty"`
	ByTenant []Share `json:"byTenant,omitempty"`
	Sampled  bool    `json:"sampled,omitempty"`
	// Stopped are the topics of a stream that accept no events, most waiting events first. Whether the
	// whole destination accepts none is known to the relays only.
	Stopped []StoppedTopic `json:"stopped,omitempty"`
	// Delivered and Failed count what happened in the last minute; nil if that is not recorded.
	Delivered *Count `json:"delivered,omitempty"`
	Failed    *Count `json:"failed,omitempty"`
	// Relays are the relays that are alive, unless RelaysUnknown is set.
	Relays []Relay `json:"relays"`
	// RelaysUnknown says why the relays are unknown; empty if they are known.
	RelaysUnknown string `json:"relaysUnknown,omitempty"`
	// OldestTransaction is the server's longest-running transaction; nil if there is none, or if the
	// role may not see it.
	OldestTransaction *pgstream.Transaction `json:"oldestTransaction,omitempty"`
	// Lag is how far each shard of a stream is behind; nil for a table.
	Lag *pgstream.Lag `json:"lag,omitempty"`
}

// Share is a part of the backlog.
type Share struct {
	// Name is the topic, type or tenant; empty for events that have none.
	Name string `json:"name"`
	// Count is the number of events.
	Count int64 `json:"count"`
	// OldestSeconds is the age of the oldest of them, in seconds.
	OldestSeconds float64 `json:"oldestSeconds"`
}

// StoppedTopic is a topic that accepts no events at present.
type StoppedTopic struct {
	// Topic is its name.
	Topic string `json:"topic"`
	// Count is the number of events that wait for it.
	Count int64 `json:"count"`
	// OldestSeconds is the age of the oldest of them, in seconds.
	OldestSeconds float64 `json:"oldestSeconds"`
	// LastError says why it accepts none.
	LastError string `json:"lastError,omitempty"`
}

// Relay is a relay that is alive.
type Relay struct {
	// Worker is its id.
	Worker string `json:"worker"`
	// Host and PID are where it runs, StartedAt is when it started. Queue tables do not record these.
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// Holds is the number of events of a queue table, or of shards of a stream, that it has claimed.
	Holds int `json:"holds"`
	// LeaseSeconds is the time until its lease ends, in seconds.
	LeaseSeconds float64 `json:"leaseSeconds"`
	// Waits is set while its destination accepts nothing. Queue tables do not record it.
	Waits bool `json:"waits,omitempty"`
}
