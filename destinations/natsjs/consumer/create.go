package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/destinations/natsjs/internal/streams"
)

// askTimeout bounds what the server is asked, and told to make, in a row.
const askTimeout = 5 * time.Second

// unfitError is a durable consumer that is missing or has wrong settings: waiting does not fix it.
type unfitError struct{ text string }

func (e unfitError) Error() string { return e.text }

// find looks the durable consumer up, and makes it with Create.
func (f *feed) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	durable, err := f.ask(ctx)
	if err != nil {
		return fmt.Errorf("find durable consumer %s: %w", f.consumer.config.Durable, err)
	}
	settings := durable.CachedInfo().Config
	if err := f.consumer.check(&settings); err != nil {
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

// ask asks for the durable consumer, or makes it.
func (f *feed) ask(ctx context.Context) (jetstream.Consumer, error) {
	config := &f.consumer.config
	js, err := jetstream.New(f.conn)
	if err != nil {
		return nil, err
	}
	stream := config.Broker.Stream
	if stream == "" {
		stream, err = js.StreamNameBySubject(ctx, config.subjects()[0])
	}
	var durable jetstream.Consumer
	if err == nil {
		durable, err = js.Consumer(ctx, stream, config.Durable)
	}
	noStream := errors.Is(err, jetstream.ErrStreamNotFound)
	switch {
	case !noStream && !errors.Is(err, jetstream.ErrConsumerNotFound):
		return durable, err
	case !config.Broker.Create && noStream:
		return nil, unfitError{fmt.Sprintf("there is no stream %s; create it, or have it created with ?create=true", cmp.Or(stream, "for "+config.Topics[0]))}
	case !config.Broker.Create:
		return nil, unfitError{fmt.Sprintf("stream %s has no durable consumer %s; create it, or have it created with ?create=true", stream, config.Durable)}
	case noStream:
		if stream, err = f.consumer.createStream(ctx, f.conn); err != nil {
			return nil, err
		}
	}
	return js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: config.Durable, FilterSubjects: config.subjects(),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: config.AckWait, MaxDeliver: -1,
	})
}

// createStream makes the stream of the topics, as a publisher to them does.
func (c *Consumer) createStream(ctx context.Context, conn *nats.Conn) (string, error) {
	subjects := c.config.subjects()
	if len(subjects) == 0 {
		return "", unfitError{fmt.Sprintf("there is no stream %s, and no Config.Topics to create it for", c.config.Broker.Stream)}
	}
	name := cmp.Or(c.config.Broker.Stream, streams.Name(subjects[0]))
	for _, subject := range subjects {
		if err := streams.Create(ctx, conn, name, subject); err != nil {
			return "", err
		}
	}
	return name, nil
}

// check rejects a durable consumer that would lose messages, or deliver them at the wrong time.
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
