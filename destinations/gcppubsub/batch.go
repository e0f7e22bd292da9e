package gcppubsub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/patience"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

const (
	// roomBytes limits all requests under way together. One counts for leastBytes at least: there are never more than 64.
	roomBytes  = 16 << 20
	leastBytes = roomBytes / 64
	lastMoment = 20 * time.Millisecond
)

// batch is one call of Publish.
type batch struct {
	*Publisher
	acked func(place int)
	errs  []error
	// begun and ended are when each message was last sent and answered.
	begun, ended []time.Time
	// away has the unavailable topics, and "" if the whole service is: nothing more is sent there.
	away sync.Map
}

// isAway reports whether a topic, or the whole service, is unavailable.
func (b *batch) isAway(topic string) bool {
	_, whole := b.away.Load("")
	_, one := b.away.Load(topic)
	return whole || one
}

// note remembers what an error says about the routes.
func (b *batch) note(topic string, err error) {
	switch {
	case failure.OfTopic(err):
		b.away.Store(topic, nil)
	case failure.Is[*outbox.UnavailableError](err):
		b.away.Store("", nil)
	}
}

// run sends the requests of a lane, up to the first that fails.
func (b *batch) run(ctx context.Context, l *lane) {
	for n, r := range l.requests {
		if b.send(ctx, r) {
			continue
		}
		for _, later := range l.requests[n+1:] {
			b.skip(later)
		}
		return
	}
}

// send reports whether all messages of the request were taken.
func (b *batch) send(ctx context.Context, r *request) bool {
	if r.refused != nil {
		b.fail(r, r.refused)
		return false
	}
	weight := min(max(int64(r.bytes), leastBytes), roomBytes)
	if b.room.Acquire(ctx, weight) != nil {
		b.skip(r)
		return false
	}
	if b.isAway(r.topic) || over(ctx) {
		b.room.Release(weight)
		b.skip(r)
		return false
	}
	began := time.Now()
	err := b.call(ctx, r)
	ended := time.Now()
	for _, place := range r.places {
		b.begun[place], b.ended[place] = began, ended
	}
	b.room.Release(weight)
	if err == nil {
		for _, place := range r.places {
			b.acked(place)
		}
		return true
	}
	if err = classify(r.topic, err); len(r.messages) > 1 && failure.MayBeOne(err) {
		return b.search(ctx, r)
	}
	b.note(r.topic, err)
	b.fail(r, err)
	return false
}

// over reports whether no time is left for a request. The service ends the others a little before ctx does, and a
// new one would only count as tried.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < lastMoment
}

// search finds the messages for which a whole request was refused, half by half.
func (b *batch) search(ctx context.Context, r *request) bool {
	first, second := r.split()
	taken := b.send(ctx, first)
	if !taken && r.key != "" {
		b.skip(second)
		return false
	}
	return b.send(ctx, second) && taken
}

// fail records a refused request. The first message of a key stands for it; the others may be fine by themselves.
// Without an answer, all of them may have been stored.
func (b *batch) fail(r *request, err error) {
	answered := isAnswer(err)
	for n, place := range r.places {
		if n > 0 && r.key != "" && answered {
			err = outbox.ErrNotAttempted
		}
		b.errs[place] = err
	}
}

// isAnswer reports whether the service itself refused a request: it took none of the messages.
func isAnswer(err error) bool {
	if away, ok := errors.AsType[*outbox.UnavailableError](err); ok {
		return away.Topic || away.Setting
	}
	return outbox.Classify(err) != outbox.ClassUnclear
}

func (b *batch) skip(r *request) {
	for _, place := range r.places {
		b.errs[place] = outbox.ErrNotAttempted
	}
}

// call makes the request, and its topic where that is wanted.
func (b *batch) call(ctx context.Context, r *request) error {
	b.asked.Store(&r.topic)
	publish := func(ctx context.Context, option gax.CallOption) error {
		_, err := b.client.Publish(ctx, &pubsubpb.PublishRequest{Topic: r.topic, Messages: r.messages}, option)
		return err
	}
	err := patience.Call(ctx, publish)
	if status.Code(err) != codes.NotFound || !b.config.Create {
		return err
	}
	err = patience.Call(ctx, func(ctx context.Context, option gax.CallOption) error {
		_, err := b.client.CreateTopic(ctx, &pubsubpb.Topic{Name: r.topic}, option)
		return err
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create the topic: %w", err)
	}
	return patience.Call(ctx, publish)
}
