package ops

import (
	"encoding/json"
	"time"
)

// AuditEntry is something that somebody did.
type AuditEntry struct {
	// ID numbers the entries.
	ID int64 `json:"id"`
	// Actor is who did it.
	Actor string `json:"actor"`
	// Operation is what was done, to Target.
	Operation Operation `json:"operation"`
	Target    string    `json:"target"`
	// Request is the filter and the options.
	Request json.RawMessage `json:"request"`
	// Events is how many events were changed so far. It is written together with the change.
	Events int64 `json:"events"`
	// StartedAt and EndedAt are when. EndedAt is zero while it runs, or if it was cut off.
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Outcome is "running", "done", "interrupted", or "failed: " and why. An entry that stays at
	// "running" was cut off; Events is still right.
	Outcome string `json:"outcome"`
}

// AuditLog is a page of entries, newest first.
type AuditLog struct {
	// Entries are those of the page.
	Entries []AuditEntry `json:"entries"`
	// Next is the cursor of the page after this one; empty if there is none.
	Next string `json:"next,omitempty"`
	// Missing says why nothing is audited; empty if it is.
	Missing string `json:"missing,omitempty"`
}
