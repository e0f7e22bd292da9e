package file

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// line is a message without its payload, its fields in the order in which they are written.
type line struct {
	ID            uuid.UUID         `json:"id"`
	Namespace     string            `json:"namespace"`
	Topic         string            `json:"topic"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregateType"`
	AggregateID   string            `json:"aggregateId"`
	TenantID      *uuid.UUID        `json:"tenantId"`
	DedupeKey     string            `json:"dedupeKey"`
	Key           string            `json:"key"`
	CreatedAt     time.Time         `json:"createdAt"`
	Attempt       int               `json:"attempt"`
	Headers       map[string]string `json:"headers"`
	ContentType   string            `json:"contentType"`
}

// appendLine writes one message. It inserts the payload as it is: encoding it as a field would change its spelling.
func appendLine(out *bytes.Buffer, m *outbox.Message) error {
	l := line{
		ID: m.ID, Namespace: m.Namespace, Topic: m.Topic, Type: m.Type,
		AggregateType: m.AggregateType, AggregateID: m.AggregateID, DedupeKey: m.DedupeKey, Key: m.Key,
		CreatedAt: m.CreatedAt, Attempt: m.Attempt, Headers: m.Headers, ContentType: m.ContentType,
	}
	if m.TenantID != uuid.Nil {
		l.TenantID = &m.TenantID
	}
	if l.Headers == nil {
		l.Headers = map[string]string{}
	}
	doc, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the event as JSON: %w", err)
	}
	out.Write(doc[:len(doc)-1])
	if json.Valid(m.Payload) && !bytes.ContainsAny(m.Payload, "\r\n") {
		out.WriteString(`,"payload":`)
		out.Write(m.Payload)
	} else {
		// Not JSON, or JSON over several lines, which would not be JSON Lines.
		out.WriteString(`,"payloadBase64":"`)
		out.WriteString(base64.StdEncoding.EncodeToString(m.Payload))
		out.WriteByte('"')
	}
	out.WriteString("}\n")
	return nil
}
