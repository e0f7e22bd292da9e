package ops

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// position is a place in a list: the last event that was looked at. To callers it is an
// opaque text.
type position struct {
	// Walk is the order of the list; a position means nothing in another.
	Walk string `json:"w"`
	// At and ID are the place in a queue table.
	At time.Time `json:"t,omitzero"`
	ID uuid.UUID `json:"i,omitzero"`
	// Seq is the place in a stream, and in the audit log.
	Seq int64 `json:"s,omitempty"`
}

func (p position) String() string {
	doc, err := json.Marshal(p)
	if err != nil { // cannot be: a time of the database's has a year of four digits
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(doc)
}

// parsePosition reads a cursor; nil for none.
func parsePosition(cursor string) (*position, error) {
	if cursor == "" {
		return nil, nil
	}
	doc, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w: %w", ErrFilter, errCursor)
	}
	var p position
	if err := json.Unmarshal(doc, &p); err != nil {
		return nil, fmt.Errorf("outbox: %w: %w", ErrFilter, errCursor)
	}
	return &p, nil
}
