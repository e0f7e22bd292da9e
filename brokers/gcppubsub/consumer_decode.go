package gcppubsub

import (
	"maps"
	"strings"

	"cloud.google.com/go/pubsub/v2"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/wire"
)

// decode makes an event of what the service delivered.
func (r *receiver) decode(m *pubsub.Message) consume.Delivery {
	attributes := maps.Clone(m.Attributes)
	// The service's own, which no dead letter could be published with.
	maps.DeleteFunc(attributes, func(name, _ string) bool { return strings.HasPrefix(name, "goog") })
	message, err := wire.Decode(attributes, m.Data, cePrefix)
	if err != nil {
		message.Headers = attributes // all that there is, for who reads the dead letter
	} else if _, is := attributes[cePrefix+"specversion"]; is {
		message.ContentType = message.Headers[ceContentType]
		delete(message.Headers, ceContentType)
	}
	message.Topic, message.Key = r.subscription.topic, m.OrderingKey
	if m.DeliveryAttempt != nil {
		message.Attempt = *m.DeliveryAttempt
	} else {
		message.Attempt = r.attempts.next(m.ID)
	}
	return consume.Delivery{Message: message, Err: err}
}
