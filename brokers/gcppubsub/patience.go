package gcppubsub

import (
	"context"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// outage is how long a request is repeated while the service cannot be reached or
	// stumbles. A connection that only broke is back by then; the relay waits for the rest.
	outage = 3 * time.Second
	// longest bounds a request of a caller who set no deadline.
	longest = time.Minute
)

// patiently makes a request, and repeats it through short troubles.
func patiently(ctx context.Context, request func(context.Context, gax.CallOption) error) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	p := &patience{backoff: gax.Backoff{Initial: 50 * time.Millisecond, Max: time.Second, Multiplier: 2}}
	err := request(ctx, gax.WithRetry(func() gax.Retryer { return p }))
	if err != nil && p.trouble != nil && ctx.Err() != nil {
		// The trouble says more than that time ran out over it.
		return p.trouble
	}
	return err
}

// patience counts from the first failure of a request.
type patience struct {
	backoff gax.Backoff
	until   time.Time
	trouble error
}

// Retry says whether to repeat a request that failed with err, and after how long.
func (p *patience) Retry(err error) (time.Duration, bool) {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.Internal:
	default:
		return 0, false
	}
	if p.trouble = err; p.until.IsZero() {
		p.until = time.Now().Add(outage)
	}
	pause := p.backoff.Pause()
	return pause, time.Now().Add(pause).Before(p.until)
}
