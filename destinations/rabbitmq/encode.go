package rabbitmq

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

const (
	// maxShort is the limit of AMQP's short strings, in bytes.
	maxShort = 255
	// maxHeaders is the limit of a message's properties: they travel in one frame.
	maxHeaders = frameSize - 2048
	frameSize  = 128 << 10
)

// cloudEventsPrefix is that of CloudEvents' binding for AMQP.
const cloudEventsPrefix = "cloudEvents_"

// item is one message on its way.
type item struct {
	place      int // in the round
	routingKey string
	publishing amqp.Publishing

	tried        bool                       // to be written
	confirmation *amqp.DeferredConfirmation // nil when it was not
}

// encode makes a message of AMQP, or says why it cannot be one.
func (c *Config) encode(place int, message *outbox.Message) (*item, error) {
	if message.Topic == "" && strings.Contains(c.RoutingKey, "{topic}") {
		return nil, outbox.ErrNoTopic
	}
	headers := make(amqp.Table)
	size := 0
	attributes := c.Format.Attributes(message, cloudEventsPrefix)
	if !c.Format.CloudEvents && message.Key != "" {
		attributes = append(attributes, wire.Attribute{Name: wire.EventKey, Value: message.Key})
	}
	for _, a := range attributes {
		if len(a.Name) > maxShort {
			return nil, outbox.Rejected(fmt.Errorf("the name of the header %.40q... has %d bytes; AMQP takes %d", a.Name, len(a.Name), maxShort))
		}
		headers[a.Name] = a.Value
		size += len(a.Name) + len(a.Value) + 6 // a byte for the name's length, one for the type, four for the length
	}
	if size > maxHeaders {
		return nil, outbox.Rejected(fmt.Errorf("the headers have %d bytes; AMQP takes %d", size, maxHeaders))
	}
	i := &item{
		place: place, routingKey: c.routingKey(message),
		publishing: amqp.Publishing{
			DeliveryMode: amqp.Persistent, MessageId: message.ID.String(), Type: message.Type, Timestamp: message.CreatedAt,
			ContentType: message.ContentType, Headers: headers, Body: message.Payload,
		},
	}
	for name, value := range map[string]string{"routing key": i.routingKey, "type": message.Type, "content type": message.ContentType} {
		if len(value) > maxShort {
			return nil, outbox.Rejected(fmt.Errorf("the %s %.40q... has %d bytes; AMQP takes %d", name, value, len(value), maxShort))
		}
	}
	return i, nil
}
