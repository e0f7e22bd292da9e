package emit

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/packfinderz/outbox"
)

// newColumns are the parameters for events that can meet no conflict.
func (p *Plan) newColumns() []Column {
	if p.NewColumns == 0 {
		return p.Columns
	}
	return p.Columns[:p.NewColumns]
}

// value is the parameter for one event.
func (c Column) value(ev *outbox.Event) any {
	if c.Bytes != nil {
		return c.Bytes(ev)
	}
	if text := c.Text(ev); text != nil {
		return *text
	}
	return nil
}

// values is the column of many events, for an array parameter.
func (c Column) values(rows []*outbox.Event) any {
	if c.Bytes != nil {
		column := make([][]byte, len(rows))
		for i, ev := range rows {
			column[i] = c.Bytes(ev)
		}
		return column
	}
	column := make([]*string, len(rows))
	set := 0
	for i, ev := range rows {
		if column[i] = c.Text(ev); column[i] != nil {
			set++
		}
	}
	if set > 0 && set < len(rows) {
		return column
	}
	// Most columns are all set, which drivers encode faster, or all NULL: the statements fill
	// a column that is too short with NULL.
	plain := make([]string, set)
	for i := range plain {
		plain[i] = *column[i]
	}
	return plain
}

// String is a text field that is NULL when empty.
func String(field func(*outbox.Event) *string) func(*outbox.Event) *string {
	return func(ev *outbox.Event) *string {
		if s := field(ev); *s != "" {
			return s
		}
		return nil
	}
}

// ID is the event's id.
func ID(ev *outbox.Event) *string {
	id := ev.ID.String()
	return &id
}

// TenantID is the tenant's id, or NULL.
func TenantID(ev *outbox.Event) *string {
	if ev.TenantID == [16]byte{} {
		return nil
	}
	id := ev.TenantID.String()
	return &id
}

// Payload is the payload as text.
func Payload(ev *outbox.Event) *string {
	payload := string(ev.Payload)
	return &payload
}

// Headers are the headers as a JSON object, or NULL.
func Headers(ev *outbox.Event) *string {
	if len(ev.Headers) == 0 {
		return nil
	}
	// A map of strings always marshals.
	doc, _ := json.Marshal(ev.Headers)
	headers := string(doc)
	return &headers
}

// NotBefore is the moment of the first attempt, or NULL for now. It is sent in UTC,
// so that no session's time zone can move it.
func NotBefore(ev *outbox.Event) *string {
	if ev.NotBefore.IsZero() {
		return nil
	}
	moment := ev.NotBefore.UTC().Format(time.RFC3339Nano)
	return &moment
}

// MaxAttempts is the event's own maximum, or NULL.
func MaxAttempts(ev *outbox.Event) *string {
	if ev.MaxAttempts == 0 {
		return nil
	}
	n := strconv.Itoa(ev.MaxAttempts)
	return &n
}
