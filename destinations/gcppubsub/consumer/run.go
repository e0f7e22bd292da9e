package consumer

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

const (
	// inHandBytes is what the messages in hand may have together.
	inHandBytes = 64 << 20
	// longestHandling is how long the deadline of a message is extended at most.
	longestHandling = 24 * time.Hour
	// longestWait bounds how long a message that failed is kept before it is given back.
	longestWait = 10 * time.Second
	// flush is how long the last acknowledgements may take.
	flush = 5 * time.Second
	// obedience is how long a handler has to return after its context ended.
	obedience = time.Second
)

// receiver is one connection to a subscription.
type receiver struct {
	*Consumer
	subscription *subscription
	// ctx ends when no more is to be begun, and work when what is being handled has to end.
	ctx, work context.Context
	// slots are taken by messages that are being handled, and room by those that failed and wait.
	slots, room chan struct{}
}

// consume receives until ctx ends, and then returns nil, or until the service refuses.
func (c *Consumer) consume(ctx context.Context, client *pubsub.Client) error {
	found, err := c.find(ctx, client)
	if err != nil {
		return err
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	r := &receiver{
		Consumer: c, subscription: found, ctx: ctx, work: work,
		slots: make(chan struct{}, c.config.Process.Concurrency), room: make(chan struct{}, c.config.Process.Concurrency),
	}
	subscriber := client.Subscriber(c.config.Subscription)
	subscriber.ReceiveSettings = pubsub.ReceiveSettings{
		MaxExtension: longestHandling, MinDurationPerAckExtension: c.config.AckDeadline, MaxDurationPerAckExtension: c.config.AckDeadline,
		MaxOutstandingMessages: 2 * c.config.Process.Concurrency, MaxOutstandingBytes: inHandBytes, NumGoroutines: 1,
	}
	received := make(chan error, 1)
	go func() { received <- subscriber.Receive(ctx, r.receive) }()
	select {
	case err := <-received:
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("receive from %s: %w", c.config.Subscription, err)
		}
		return nil
	case <-ctx.Done():
	}
	grace := time.AfterFunc(c.config.Process.Grace, end)
	for range cap(r.slots) {
		r.slots <- struct{}{} // when all are taken, nothing is being handled
	}
	grace.Stop()
	select {
	case <-received:
	case <-time.After(flush):
		// Closing the client waits for the service, however long that is unavailable. What was not acknowledged
		// comes again.
		_ = client.Close()
		<-received
	}
	return nil
}

// receive is called for every message, side by side; for those of a key one after the other.
func (r *receiver) receive(_ context.Context, m *pubsub.Message) {
	if r.handle(m) {
		m.Ack()
	} else {
		m.Nack()
	}
}

// handle reports whether the service may forget the message.
func (r *receiver) handle(m *pubsub.Message) bool {
	key := m.OrderingKey
	if !r.subscription.ordered {
		key = ""
	}
	if r.holds.refuse(key, m.ID) || !r.begin() {
		return false
	}
	verdict := r.process(r.decode(m))
	<-r.slots
	switch {
	case verdict.Ack:
		r.failures.Forget(m.ID)
		r.holds.release(key, m.ID)
		return true
	case r.ctx.Err() != nil:
		return false
	}
	r.failures.Add(m.ID)
	r.holds.hold(key, m.ID)
	r.wait(verdict.After)
	return false
}

// begin takes a slot, unless the consumer stops.
func (r *receiver) begin() bool {
	select {
	case r.slots <- struct{}{}:
	case <-r.ctx.Done():
		return false
	}
	if r.ctx.Err() != nil {
		<-r.slots
		return false
	}
	return true
}

// process waits for a handler, and a little longer than it should take to end.
func (r *receiver) process(delivery consume.Delivery) consume.Verdict {
	answer := make(chan consume.Verdict, 1)
	go func() { answer <- r.processor.Process(r.work, delivery) }()
	select {
	case verdict := <-answer:
		return verdict
	case <-r.work.Done():
	}
	select {
	case verdict := <-answer:
		return verdict
	case <-time.After(obedience):
		return consume.Verdict{} // it is left alone, and the message comes again
	}
}

// wait delays a failed message. A subscription with a retry policy delays by itself. If as many wait as may be
// handled, the next one does not: it would hold up others.
func (r *receiver) wait(after time.Duration) {
	if r.subscription.retries {
		return
	}
	select {
	case r.room <- struct{}{}:
		consuming.Pause(r.ctx, min(after, longestWait))
		<-r.room
	default:
	}
}
