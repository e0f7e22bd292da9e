// Package patience repeats requests during short failures of the service.
package patience

import (
	"context"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// outage is how long a request is repeated while the service cannot be reached or fails. A connection that only
	// broke is back by then; the relay waits for the rest.
	outage = 3 * time.Second
	// longest bounds a request of a caller who set no deadline.
	longest = time.Minute
)

// Call makes a request, and repeats it during short failures.
func Call(ctx context.Context, request func(context.Context, gax.CallOption) error) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r := &retryer{backoff: gax.Backoff{Initial: 50 * time.Millisecond, Max: time.Second, Multiplier: 2}}
	err := request(ctx, gax.WithRetry(func() gax.Retryer { return r }))
	if err != nil && r.trouble != nil && ctx.Err() != nil {
		// The failure says more than the timeout that followed it.
		return r.trouble
	}
	return err
}

// retryer counts from the first failure of a request.
type retryer struct {
	backoff gax.Backoff
	until   time.Time
	trouble error
}

// Retry says whether to repeat a request that failed with err, and after how long.
func (r *retryer) Retry(err error) (time.Duration, bool) {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.Internal:
	default:
		return 0, false
	}
	if r.trouble = err; r.until.IsZero() {
		r.until = time.Now().Add(outage)
	}
	pause := r.backoff.Pause()
	return pause, time.Now().Add(pause).Before(r.until)
}
