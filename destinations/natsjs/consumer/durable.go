package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/destinations/natsjs/internal/streams"
)

// askTimeout bounds what the server is asked, and told to make, in a row.
const askTimeout = 5 * time.Second

// unfitError is a durable consumer that cannot do, or is missing: nothing that waiting mends.
type unfitError struct{ text string }

func (e unfitError) Error() string { return e.text }

// find looks the durable consumer up, and makes it with Create.
func (f *feed) find(ctx context.Context) error {
	c := f.consumer
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	js, err := jetstream.New(f.conn)
	if err != nil {
		return fmt.Errorf("find durable consumer %s: %w", c.config.Durable, err)
	}
	durable, err := js.Consumer(ctx, c.config.Broker.Stream, c.config.Durable)
	missing := errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
	switch {
	case missing && c.config.Broker.Create:
		durable, err = c.create(ctx, f, js, errors.Is(err, jetstream.ErrStreamNotFound))
	case missing:
		return unfitError{fmt.Sprintf("stream %s has no durable consumer %s: %v; make it, or let Create do it", c.config.Broker.Stream, c.config.Durable, err)}
	}
	if err != nil {
		return fmt.Errorf("find durable consumer %s: %w", c.config.Durable, err)
	}
	settings := durable.CachedInfo().Config
	if err := c.check(&settings); err != nil {
		return err
	}
	f.ackWait = settings.AckWait
	for _, wait := range settings.BackOff {
		f.ackWait = min(f.ackWait, wait)
	}
	f.ackWait = max(f.ackWait, 30*time.Millisecond)
	f.durable = durable
	return nil
}

// create makes the durable consumer, and the stream if there is none.
func (c *Consumer) create(ctx context.Context, f *feed, js jetstream.JetStream, stream bool) (jetstream.Consumer, error) {
	if stream {
		if len(c.config.Subjects) == 0 {
			return nil, unfitError{fmt.Sprintf("there is no stream %s, and Subjects does not say what it would have", c.config.Broker.Stream)}
		}
		for _, subject := range c.config.Subjects {
			if err := streams.Create(ctx, f.conn, c.config.Broker.Stream, subject); err != nil {
				return nil, err
			}
		}
	}
	return js.CreateConsumer(ctx, c.config.Broker.Stream, jetstream.ConsumerConfig{
		Durable: c.config.Durable, FilterSubjects: c.config.Subjects,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.config.AckWait, MaxDeliver: -1,
	})
}

// check refuses a durable consumer by which messages would be lost, or come when they should
// not.
func (c *Consumer) check(settings *jetstream.ConsumerConfig) error {
	name, limit := c.config.Durable, c.config.Process.MaxDeliveries
	switch {
	case settings.DeliverSubject != "":
		return unfitError{fmt.Sprintf("durable consumer %s pushes its messages; a pull consumer is needed", name)}
	case settings.AckPolicy != jetstream.AckExplicitPolicy:
		return unfitError{fmt.Sprintf("durable consumer %s does not want each message acknowledged; its ack policy must be explicit", name)}
	case settings.MaxDeliver <= 0:
		return nil
	case c.config.Process.DeadLetters == nil:
		return unfitError{fmt.Sprintf("durable consumer %s forgets a message after %d deliveries, and there are no dead letters; set its max deliver to -1", name, settings.MaxDeliver)}
	case settings.MaxDeliver <= limit:
		return unfitError{fmt.Sprintf("durable consumer %s forgets a message after %d deliveries, before it is a dead letter (MaxDeliveries %d); set its max deliver to -1",
			name, settings.MaxDeliver, limit)}
	}
	c.log.Warn("the durable consumer forgets a message after some deliveries, which an outage can use up; set its max deliver to -1",
		"max_deliver", settings.MaxDeliver)
	return nil
}
