package emit

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
)

// value is the parameter for one event.
func (c Column) value(ev *outbox.Event) any {
	switch {
	case c.UUID != nil:
		return c.UUID(ev)
	case c.Bytes != nil:
		return c.Bytes(ev)
	case c.JSON != nil:
		return string(c.JSON(ev))
	}
	if text := c.Text(ev); text != nil {
		return *text
	}
	return nil
}

// values is the parameter for many events. The driver gives an array its form.
func (c Column) values(conn Conn, rows []*outbox.Event) any {
	switch {
	case c.UUID != nil:
		return conn.Array(each(rows, c.UUID))
	case c.Bytes != nil:
		return conn.Array(each(rows, c.Bytes))
	case c.JSON != nil:
		return joined(rows, c.JSON)
	}
	return conn.Array(texts(rows, c.Text))
}

// shared is the value that all events have in the column, where the statement takes that.
func (c Column) shared(rows []*outbox.Event) (value string, ok bool) {
	if !c.Shared {
		return "", false
	}
	first := c.Text(rows[0])
	for _, ev := range rows {
		if text := c.Text(ev); first == nil || text == nil || *text != *first {
			return "", false
		}
	}
	return *first, true
}

func each[T any](rows []*outbox.Event, value func(*outbox.Event) T) []T {
	column := make([]T, len(rows))
	for i, ev := range rows {
		column[i] = value(ev)
	}
	return column
}

// joined are documents in one text.
func joined(rows []*outbox.Event, document func(*outbox.Event) []byte) string {
	size := 0
	for _, ev := range rows {
		size += len(document(ev)) + 1
	}
	var all strings.Builder
	all.Grow(size)
	for i, ev := range rows {
		if i > 0 {
			all.WriteByte(JSONSeparator)
		}
		all.Write(document(ev))
	}
	return all.String()
}

// texts is a []string or, if some are NULL, a []*string.
func texts(rows []*outbox.Event, text func(*outbox.Event) *string) any {
	column := make([]*string, len(rows))
	set := 0
	for i, ev := range rows {
		if column[i] = text(ev); column[i] != nil {
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

// UUID is a text field that holds a UUID, or NULL when it is empty.
func UUID(field func(*outbox.Event) *string) func(*outbox.Event) pgtype.UUID {
	return func(ev *outbox.Event) pgtype.UUID {
		// The event was checked: what is no UUID is empty.
		id, err := uuid.Parse(*field(ev))
		return pgtype.UUID{Bytes: id, Valid: err == nil}
	}
}

// ID is the event's id.
func ID(ev *outbox.Event) pgtype.UUID { return pgtype.UUID{Bytes: ev.ID, Valid: true} }

// TenantID is the tenant's id, or NULL.
func TenantID(ev *outbox.Event) pgtype.UUID {
	return pgtype.UUID{Bytes: ev.TenantID, Valid: ev.TenantID != uuid.Nil}
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
