package consumer

import (
	"cloud.google.com/go/pubsub/v2"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/attribute"
)

// decode makes an event of what the service delivered.
func (r *receiver) decode(m *pubsub.Message) consume.Delivery {
	message, err := attribute.Decode(m.Attributes, m.Data)
	message.Topic, message.Key = r.subscription.topic, m.OrderingKey
	if m.DeliveryAttempt != nil {
		message.Attempt = *m.DeliveryAttempt
	} else {
		message.Attempt = r.failures.Count(m.ID) + 1
	}
	return consume.Delivery{Message: message, Err: err}
}
