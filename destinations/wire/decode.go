package wire

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// ErrNoEvent matches a message that is not an event: its event id is missing or not a UUID.
var ErrNoEvent = errors.New("the message carries no event")

// Decode converts a broker's message to an event: the reverse of Attributes. Attributes that are not fields of an
// event become its headers. The payload stays as it is. Topic and key are left empty: the broker knows them. For a
// message that is not an event, all attributes become headers, for its dead letter.
func (b Binding) Decode(attributes map[string]string, payload []byte) (outbox.Message, error) {
	left := make(map[string]string, len(attributes))
	maps.Copy(left, attributes)
	take := func(name string) string {
		value := left[name]
		delete(left, name)
		return value
	}
	message := outbox.Message{Event: outbox.Event{Payload: payload}}
	var id, created, tenant string
	if _, ok := left[b.Prefix+"specversion"]; ok {
		take(b.Prefix + "specversion")
		take(b.Prefix + "source")
		id, message.Type, created = take(b.Prefix+"id"), take(b.Prefix+"type"), take(b.Prefix+"time")
		message.AggregateType, message.AggregateID, _ = strings.Cut(take(b.Prefix+"subject"), "/")
		message.Key, tenant, message.DedupeKey = take(b.Prefix+"partitionkey"), take(b.Prefix+"tenantid"), take(b.Prefix+"dedupekey")
		take(b.Prefix + "traceparent")
		take(b.Prefix + "tracestate")
		message.ContentType = take(b.ContentType)
	} else {
		id, message.Type, created = take(EventID), take(EventType), take(CreatedAt)
		message.AggregateType, message.AggregateID = take(AggregateType), take(AggregateID)
		message.Namespace, tenant = take(Namespace), take(TenantID)
		message.DedupeKey, message.ContentType = take(DedupeKey), take(ContentType)
	}
	err := setIdentity(&message, id, tenant, created)
	switch {
	case err != nil:
		message.Headers = attributes
	case len(left) > 0:
		message.Headers = left
	}
	return message, err
}

// setIdentity parses the fields of a message that are not text.
func setIdentity(message *outbox.Message, id, tenant, created string) (err error) {
	if message.ID, err = uuid.Parse(id); err != nil {
		return fmt.Errorf("%w: event id %q: %w", ErrNoEvent, id, err)
	}
	if tenant != "" {
		if message.TenantID, err = uuid.Parse(tenant); err != nil {
			return fmt.Errorf("%w: tenant id %q: %w", ErrNoEvent, tenant, err)
		}
	}
	if created != "" {
		if message.CreatedAt, err = time.Parse(time.RFC3339Nano, created); err != nil {
			return fmt.Errorf("%w: time %q: %w", ErrNoEvent, created, err)
		}
	}
	return nil
}
