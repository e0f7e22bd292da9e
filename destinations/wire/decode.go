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

// ErrNoEvent matches a message that carries no event: it has no event id, or one that is no
// UUID.
var ErrNoEvent = errors.New("the message carries no event")

// Decode makes a message of what a broker delivered: the reverse of Format.Attributes, for
// plain attributes and for CloudEvents with the prefix. Attributes that are no field of an
// event become its headers. The payload is taken as it is; topic and key are the broker's to
// tell, and left empty.
func Decode(attributes map[string]string, payload []byte, prefix string) (outbox.Message, error) {
	left := make(map[string]string, len(attributes))
	maps.Copy(left, attributes)
	take := func(name string) string {
		value := left[name]
		delete(left, name)
		return value
	}
	message := outbox.Message{Event: outbox.Event{Payload: payload}}
	var id, created, tenant string
	if _, ok := left[prefix+"specversion"]; ok {
		take(prefix + "specversion")
		take(prefix + "source")
		id, message.Type, created = take(prefix+"id"), take(prefix+"type"), take(prefix+"time")
		message.AggregateType, message.AggregateID, _ = strings.Cut(take(prefix+"subject"), "/")
		message.Key, tenant, message.DedupeKey = take(prefix+"partitionkey"), take(prefix+"tenantid"), take(prefix+"dedupekey")
		take(prefix + "traceparent")
		take(prefix + "tracestate")
	} else {
		id, message.Type, created = take(EventID), take(EventType), take(CreatedAt)
		message.AggregateType, message.AggregateID = take(AggregateType), take(AggregateID)
		message.Namespace, tenant = take(Namespace), take(TenantID)
		message.DedupeKey, message.ContentType = take(DedupeKey), take(ContentType)
	}
	var err error
	if message.ID, err = uuid.Parse(id); err != nil {
		return message, fmt.Errorf("%w: event id %q: %w", ErrNoEvent, id, err)
	}
	if tenant != "" {
		if message.TenantID, err = uuid.Parse(tenant); err != nil {
			return message, fmt.Errorf("%w: tenant id %q: %w", ErrNoEvent, tenant, err)
		}
	}
	if created != "" {
		if message.CreatedAt, err = time.Parse(time.RFC3339Nano, created); err != nil {
			return message, fmt.Errorf("%w: time %q: %w", ErrNoEvent, created, err)
		}
	}
	if len(left) > 0 {
		message.Headers = left
	}
	return message, nil
}
