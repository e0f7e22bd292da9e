package outbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how long to wait before an event is tried again.
type RetryPolicy struct {
	// Base is the delay after the first failed attempt. Default 1 s.
	Base time.Duration
	// Max is the largest delay, before jitter. Default 5 min.
	Max time.Duration
}

// Defaults of RetryPolicy.
const (
	DefaultBaseDelay = time.Second
	DefaultMaxDelay  = 5 * time.Minute
)

// MaxRetryAfter is the longest delay that a RetryAfter can ask for.
const MaxRetryAfter = 24 * time.Hour

// RetryAfterError is a failure whose cause said when to come back.
type RetryAfterError struct {
	// Delay is the time that was asked for.
	Delay time.Duration
	// Err is the failure.
	Err error
}

// Error is the failure's own text.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// RetryAfter adds to a retryable error that the other side asked not to be tried again
// before a time has passed. The event then waits that long, at most MaxRetryAfter, or as
// long as the policy says, whichever is longer. On a store whose events have no due time of
// their own it changes nothing. A nil error stays nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{Delay: delay, Err: err}
}

// askedDelay is the delay that the other side asked for; zero for none.
func askedDelay(err error) time.Duration {
	asked := find[*RetryAfterError](err)
	if asked == nil {
		return 0
	}
	return min(max(asked.Delay, 0), MaxRetryAfter)
}

// WithDefaults fills in what is zero and refuses what makes no sense.
func (p RetryPolicy) WithDefaults() (RetryPolicy, error) {
	if p.Base == 0 {
		p.Base = DefaultBaseDelay
	}
	if p.Max == 0 {
		p.Max = max(DefaultMaxDelay, p.Base)
	}
	if p.Base < 0 || p.Max < 0 {
		return p, errors.New("outbox: a retry delay is negative")
	}
	if p.Max < p.Base {
		return p, fmt.Errorf("outbox: the largest retry delay, %s, is below the first, %s", p.Max, p.Base)
	}
	return p, nil
}

// Delay is the time to wait after the given number of failed attempts: Base, doubled with
// each further one, at most Max, then uniformly between half of that and all of it.
func (p RetryPolicy) Delay(attempts int) time.Duration {
	return jitter(p.ceiling(attempts))
}

// jitter is uniform between half of a delay and all of it, so that relays that failed
// together do not come back together.
func jitter(delay time.Duration) time.Duration {
	half := delay / 2
	return half + rand.N(delay-half+1) //nolint:gosec // it keeps no secret
}

// ceiling is the delay before jitter, without overflow for any number of attempts.
func (p RetryPolicy) ceiling(attempts int) time.Duration {
	delay := p.Base
	for range attempts - 1 {
		if delay >= p.Max-delay {
			return p.Max
		}
		delay *= 2
	}
	return min(delay, p.Max)
}
