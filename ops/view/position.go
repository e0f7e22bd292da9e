package view

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Position is a place in a list: the last event that was read. To callers it is an opaque text.
type Position struct {
	// Walk names the order of the list; a position means nothing in another order.
	Walk string `json:"w"`
	// At and ID are the place in a queue table.
	At time.Time `json:"t,omitzero"`
	ID uuid.UUID `json:"i,omitzero"`
	// Seq is the place in a stream, and in the audit log.
	Seq int64 `json:"s,omitempty"`
}

func (p Position) String() string {
	doc, err := json.Marshal(p)
	if err != nil { // cannot be: the database's times have years of four digits
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(doc)
}

// ParsePosition reads a cursor; an empty one is nil.
func ParsePosition(cursor string) (*Position, error) {
	if cursor == "" {
		return nil, nil
	}
	doc, err := base64.RawURLEncoding.DecodeString(cursor)
	var p Position
	if err == nil {
		err = json.Unmarshal(doc, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", ErrCursor)
	}
	return &p, nil
}
