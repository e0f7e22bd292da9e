package patience_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/patience"
)

// ask makes a request that is answered with these codes, one after the other and the last forever,
// and tells how often it was made and how long it took.
func ask(ctx context.Context, answers ...codes.Code) (count int, took time.Duration, err error) {
	began := time.Now()
	err = patience.Call(ctx, func(ctx context.Context, option gax.CallOption) error {
		return gax.Invoke(ctx, func(context.Context, gax.CallSettings) error {
			answer := answers[min(count, len(answers)-1)]
			count++
			return status.Error(answer, "as the test wants it")
		}, option)
	})
	return count, time.Since(began), err
}

// An outage is known after three seconds, and short troubles are not told of.
func TestCall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers       []codes.Code
		count, most   int
		least, longer time.Duration
		code          codes.Code
	}{
		"fine":            {[]codes.Code{codes.OK}, 1, 1, 0, 0, codes.OK},
		"a short trouble": {[]codes.Code{codes.Unavailable, codes.Internal, codes.Aborted, codes.OK}, 4, 4, 0, 3 * time.Second, codes.OK},
		"an outage":       {[]codes.Code{codes.Unavailable}, 3, 1000, time.Second, 3 * time.Second, codes.Unavailable},
		"a refusal":       {[]codes.Code{codes.InvalidArgument}, 1, 1, 0, 0, codes.InvalidArgument},
		"a quota":         {[]codes.Code{codes.ResourceExhausted}, 1, 1, 0, 0, codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				count, took, err := ask(t.Context(), test.answers...)
				if status.Code(err) != test.code || count < test.count || count > test.most || took < test.least || took > test.longer {
					t.Errorf("%v after %d requests in %s", err, count, took)
				}
			})
		})
	}
}

// The trouble says more than that time ran out over it.
func TestCallOutOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, _, err := ask(ctx, codes.Unavailable); status.Code(err) != codes.Unavailable || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an outage that is longer than the deadline is %v", err)
		}
	})
}
