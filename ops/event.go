package ops

import (
	"time"

	"github.com/packfinderz/outbox"
)

// Event is an event with what has become of it. Its Payload and Headers are set by Show only.
type Event struct {
	outbox.Event
	// State is what becomes of it next.
	State State
	// Attempts are those counted so far.
	Attempts int
	// LastError is what the last failed attempt ended with.
	LastError string
	// Reason says why it is dead, where the target knows.
	Reason string
	// CreatedAt is when it was emitted.
	CreatedAt time.Time
	// NextAttemptAt is when it is due; zero if it is not going to be tried, or at once.
	NextAttemptAt time.Time
	// DeliveredAt is when it was delivered; zero if it was not, or the target does not know.
	DeliveredAt time.Time
	// ClaimedBy is the relay that has it, until ClaimedUntil; empty if none does, or unknown.
	ClaimedBy    string
	ClaimedUntil time.Time
	// Replayed is set where this is a copy that was parked to be published again.
	Replayed bool
}

// Listing is a page of events, newest first.
type Listing struct {
	// Events are those found.
	Events []Event `json:"events"`
	// Next is the cursor of the page after this one; empty if there is none.
	Next string `json:"next,omitempty"`
	// Unindexed is set where no index serves the filter and so only a part of the events was
	// looked through, back to SearchedTo. Next goes on from there.
	Unindexed bool `json:"unindexed,omitempty"`
	// SearchedTo is when the last event that was looked at was emitted; with Unindexed.
	SearchedTo time.Time `json:"searchedTo,omitzero"`
	// Searched is how many events were looked at; with Unindexed.
	Searched int `json:"searched,omitempty"`
	// Note says, to people, what else to know about the list: that its order is not that of time, say.
	Note string `json:"note,omitempty"`
}

// Details is all that is known of an event.
type Details struct {
	Event
	// Timeline is what happened to it, as far as the target knows, oldest first.
	Timeline []Moment
}

// Moment is something that happened to an event.
type Moment struct {
	// At is when.
	At time.Time `json:"at"`
	// What is it in a few words: "emitted", "failed", "dead", "retried", "delivered" and so on.
	What string `json:"what"`
	// Detail says more: an error, a relay, a person.
	Detail string `json:"detail,omitempty"`
}

// DeadGroups are the dead events in groups, largest first.
type DeadGroups struct {
	// Groups has at most 100 of them.
	Groups []DeadGroup `json:"groups"`
	// Events is how many events were looked at: the newest ones.
	Events int64 `json:"events"`
	// Cut is set where there are more, in groups that may be missing or larger than shown.
	Cut bool `json:"cut"`
}

// DeadGroup are dead events of a type that died of the same thing.
type DeadGroup struct {
	// Type, or Topic where events have no type, is what they have in common.
	Type  string `json:"type,omitempty"`
	Topic string `json:"topic,omitempty"`
	// Error is their last error with numbers and ids taken out; see Filter.Error.
	Error string `json:"error"`
	// Reason is why they are dead, where the target knows.
	Reason string `json:"reason,omitempty"`
	// Count is how many there are.
	Count int64 `json:"count"`
	// Oldest and Newest are when the first and the last of them were emitted.
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
	// Example is the id of one of them.
	Example string `json:"example"`
}
