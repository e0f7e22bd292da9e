package consumer

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/internal/consuming"
)

const (
	// fetchWait is how long one request for messages lasts. A stopping Run waits for the last one, so that no
	// message gets lost on its way.
	fetchWait = time.Second
	// flushTimeout bounds the last words to the server.
	flushTimeout = 5 * time.Second
)

// run is one Run of a consumer.
type run struct {
	*Consumer
	ctx    context.Context // of the handlers
	queues *consuming.Queues
	hand   *hand
}

// receive takes messages while there is room for them, until the context ends. It asks for as many as there is room
// for and none in advance: nothing would keep a message that waits in the client from being delivered again.
func (r *run) receive(ctx context.Context, feed *feed) {
	for ctx.Err() == nil {
		n := r.hand.room(ctx, max(1, r.config.Process.Concurrency/2))
		if n == 0 || !feed.ready(ctx) {
			continue
		}
		batch, err := feed.durable.Fetch(n, jetstream.FetchMaxWait(fetchWait))
		if err == nil {
			for msg := range batch.Messages() {
				r.take(ctx, msg)
			}
			err = batch.Error()
		}
		feed.note(err)
	}
}

// take begins with a message.
func (r *run) take(ctx context.Context, msg jetstream.Msg) {
	d, err := r.config.decode(msg)
	if err != nil {
		r.log.Error("a message that is not JetStream's was passed over", "subject", msg.Subject(), "error", err)
		return
	}
	// Take it even if there is no time left for it: then it is given back. If the hand already has it, it is a
	// copy, made while the server could not be told to wait.
	if !r.hand.take(d) || ctx.Err() != nil {
		return
	}
	key := d.delivery.Message.Key
	if key == "" && r.config.Ordered {
		key = msg.Subject()
	}
	r.queues.Add(key, func() (bool, time.Duration) {
		if ctx.Err() != nil {
			return false, 0 // it is given back
		}
		return r.handle(d)
	})
}

// handle handles a message once, and asks to be called again if it is to be tried again here.
func (r *run) handle(d *delivered) (again bool, after time.Duration) {
	verdict := r.processor.Process(r.ctx, d.delivery)
	switch {
	case verdict.Ack:
		r.settled(d, d.msg.Ack())
	case r.ctx.Err() != nil:
		// It is still in the hand, and given back from there.
	case r.config.Ordered:
		d.delivery.Message.Attempt++
		return true, verdict.After
	default:
		r.settled(d, d.msg.NakWithDelay(verdict.After))
	}
	return false, 0
}

func (r *run) settled(d *delivered, err error) {
	r.hand.drop(d)
	if err != nil {
		r.log.Warn("the server could not be told what became of a message; it comes again",
			"event_id", d.delivery.Message.ID, "error", err)
	}
}
