package gcppubsub

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/gcppubsub/internal/patience"
)

const (
	// roomBytes is what all requests under way may hold together, and leastBytes what one
	// counts for at least: there are never more than 64.
	roomBytes  = 16 << 20
	leastBytes = roomBytes / 64
	lastMoment = 20 * time.Millisecond
)

// batch is one call of Publish.
type batch struct {
	*Publisher
	errs []error
	// away is set once the service cannot be reached: nothing more is sent.
	away atomic.Bool
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
	if b.away.Load() || over(ctx) {
		b.room.Release(weight)
		b.skip(r)
		return false
	}
	err := b.call(ctx, r)
	b.room.Release(weight)
	switch {
	case err == nil:
		return true
	case status.Code(err) == codes.InvalidArgument && len(r.messages) > 1:
		return b.search(ctx, r)
	}
	if status.Code(err) == codes.PermissionDenied {
		b.denied.Store(&r.topic)
	}
	if err = classify(r.topic, err); outbox.Classify(err) == outbox.ClassUnavailable {
		b.away.Store(true)
	}
	b.fail(r, err)
	return false
}

// over reports whether there is no time left for a request. The service ends the others a
// little before ctx does, and what takes their place would only be counted as tried.
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

// fail answers a request that was refused. Of a key the first message stands for it; the
// others may be fine by themselves.
func (b *batch) fail(r *request, err error) {
	for n, place := range r.places {
		if n > 0 && r.key != "" {
			err = outbox.ErrNotAttempted
		}
		b.errs[place] = err
	}
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
