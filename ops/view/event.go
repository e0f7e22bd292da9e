package view

import (
	"time"

	"github.com/packfinderz/outbox"
)

// Event is an event and its state. Only Show sets Payload and Headers.
type Event struct {
	outbox.Event
	// State says what happens to it next.
	State State
	// Attempts is the number of attempts counted so far.
	Attempts int
	// LastError is the error of the last failed attempt.
	LastError string
	// Reason says why it is dead, if the outbox records that.
	Reason string
	// CreatedAt is when it was emitted.
	CreatedAt time.Time
	// NextAttemptAt is when it is due; zero if it is due at once, or never.
	NextAttemptAt time.Time
	// DeliveredAt is when it was delivered; zero if it was not, or if the outbox does not record that.
	DeliveredAt time.Time
	// ClaimedBy is the relay that has claimed it, until ClaimedUntil; empty if none has, or if that is unknown.
	ClaimedBy    string
	ClaimedUntil time.Time
	// Replayed is set on a copy that was parked to be published again.
	Replayed bool
}

// Listing is a page of events, newest first.
type Listing struct {
	// Events are the events found.
	Events []Event `json:"events"`
	// Next is the cursor of the next page; empty on the last page.
	Next string `json:"next,omitempty"`
	// Unindexed is set if no index serves the filter. Then only the events back to SearchedTo were
	// read; the page at Next continues from there.
	Unindexed bool `json:"unindexed,omitempty"`
	// SearchedTo is when the last event read was emitted; with Unindexed.
	SearchedTo time.Time `json:"searchedTo,omitzero"`
	// Searched is the number of events read; with Unindexed.
	Searched int `json:"searched,omitempty"`
	// Note tells people more about the list, such as that it is not ordered by time.
	Note string `json:"note,omitempty"`
}

// Details is an event with its history.
type Details struct {
	Event
	// Timeline is what happened to the event, as far as that is recorded, oldest first.
	Timeline []Moment
}

// Moment is something that happened to an event.
type Moment struct {
	// At is when it happened.
	At time.Time `json:"at"`
	// What says what happened: "emitted", "failed", "dead", "retried", "delivered" and so on.
	What string `json:"what"`
	// Detail is an error, a relay or a person.
	Detail string `json:"detail,omitempty"`
}

// DeadGroups are the dead events in groups, largest first.
type DeadGroups struct {
	// Groups are the groups, 100 at most.
	Groups []DeadGroup `json:"groups"`
	// Events is the number of events that were grouped: the newest ones.
	Events int64 `json:"events"`
	// Cut is set if there are more dead events: groups may be missing, or larger than shown.
	Cut bool `json:"cut"`
}

// DeadGroup is a group of dead events with the same type and error.
type DeadGroup struct {
	// Type is their type; Topic is their topic if events have no type.
	Type  string `json:"type,omitempty"`
	Topic string `json:"topic,omitempty"`
	// Error is their last error, with ids and numbers replaced by "#"; see Filter.Error.
	Error string `json:"error"`
	// Reason says why they are dead, if the outbox records that.
	Reason string `json:"reason,omitempty"`
	// Count is the number of events.
	Count int64 `json:"count"`
	// Oldest and Newest are when the first and the last of them were emitted.
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
	// Example is the id of one of them.
	Example string `json:"example"`
}
