package consumer

import (
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/natsjs/internal/header"
	"github.com/packfinderz/outbox/destinations/wire"
)

// decode makes an event of a message of the stream, as the publisher wrote it.
func (c *Config) decode(msg jetstream.Msg) (*delivered, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	attributes := make(map[string]string, len(msg.Headers()))
	for name, values := range msg.Headers() {
		if !header.IsOwn(name) {
			attributes[name] = strings.TrimSpace(strings.Join(values, ",")) // as a dead letter can have it
		}
	}
	message, err := header.Binding.Decode(attributes, msg.Data())
	message.Topic = strings.TrimPrefix(msg.Subject(), c.Broker.SubjectPrefix)
	message.Attempt = int(meta.NumDelivered)
	if key := message.Headers[wire.EventKey]; err == nil && key != "" && message.Key == "" {
		message.Key = key
		delete(message.Headers, wire.EventKey)
	}
	if message.Key == "" && message.AggregateID != "" {
		message.Key = message.AggregateType + "/" + message.AggregateID
	}
	return &delivered{msg: msg, sequence: meta.Sequence.Stream, delivery: consume.Delivery{Message: message, Err: err}}, nil
}
