// Package audit is the log of what people did to events: who retried, replayed, held, released or purged them.
// Package ops writes and reads it. Its tables are in the schema of the outbox's tables. Without them everything
// works, and nothing is logged.
package audit

import (
	"embed"
	"encoding/json"
	"io/fs"
	"time"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/ops/view"
)

//go:embed migrations/*.sql
var files embed.FS

// Table is the log's table of entries; EventsTable is its table of the events of each entry.
const (
	Table       = "outbox_audit"
	EventsTable = Table + "_events"
)

// Missing says why nothing is logged in a database without the tables.
const Missing = "there is no table " + Table + "; make it with outbox migrate up --audit"

// Migrations returns the goose migrations of the log's tables. They run in the first schema of the search path.
func Migrations() (fs.FS, error) {
	return migrations.Render(files, func(sql string) (string, error) { return sql, nil })
}

// Entry is one operation of one person.
type Entry struct {
	// ID is the entry's number.
	ID int64 `json:"id"`
	// Actor is the person.
	Actor string `json:"actor"`
	// Operation is what was done; Target is the name of the outbox.
	Operation view.Operation `json:"operation"`
	Target    string         `json:"target"`
	// Request is the filter and the options.
	Request json.RawMessage `json:"request"`
	// Events is the number of events changed so far. It is committed together with the changes.
	Events int64 `json:"events"`
	// StartedAt and EndedAt are when the operation started and ended. EndedAt is zero while it runs, and if it
	// was cut off.
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Outcome is "running", "done", "interrupted", or "failed: " and the error. An entry that stays "running" was
	// cut off; its Events are right all the same.
	Outcome string `json:"outcome"`
}

// Page is a page of entries, newest first.
type Page struct {
	// Entries are the entries of the page.
	Entries []Entry `json:"entries"`
	// Next is the cursor of the next page; empty on the last page.
	Next string `json:"next,omitempty"`
	// Missing says why nothing is logged; empty if the log exists.
	Missing string `json:"missing,omitempty"`
}
