package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how long to wait before an event is tried again.
type RetryPolicy struct {
	// Base is the delay after the first failed attempt. Default 1 s.
	Base time.Duration
	// Max is the longest delay, before jitter. Default 5 min, or Base if that is longer.
	Max time.Duration
}

// Defaults of RetryPolicy.
const (
	DefaultBaseDelay = time.Second
	DefaultMaxDelay  = 5 * time.Minute
)

// MaxRetryAfter is the longest delay that RetryAfter accepts.
const MaxRetryAfter = 24 * time.Hour

// RetryAfterError is a failure with the destination's request to retry later.
type RetryAfterError struct {
	// Delay is the requested delay.
	Delay time.Duration
	// Err is the failure.
	Err error
}

// Error is the failure's own text.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// RetryAfter adds the destination's requested delay to a retryable error. The event then waits for that delay, at
// most MaxRetryAfter, or for the policy's, whichever is longer. It has no effect on a store whose events have no
// due time. A nil error stays nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{Delay: delay, Err: err}
}

// askedDelay returns the delay that the destination asked for; zero for none.
func askedDelay(err error) time.Duration {
	asked := find[*RetryAfterError](err)
	if asked == nil {
		return 0
	}
	return min(max(asked.Delay, 0), MaxRetryAfter)
}

// WithDefaults fills in defaults and rejects invalid values.
func (p RetryPolicy) WithDefaults() (RetryPolicy, error) {
	p.Base = cmp.Or(p.Base, DefaultBaseDelay)
	p.Max = cmp.Or(p.Max, max(DefaultMaxDelay, p.Base))
	if p.Base < 0 || p.Max < 0 {
		return p, errors.New("outbox: a retry delay is negative")
	}
	if p.Max < p.Base {
		return p, fmt.Errorf("outbox: the largest retry delay, %s, is below the first, %s", p.Max, p.Base)
	}
	return p, nil
}

// Delay returns the time to wait after the given number of failed attempts: Base, doubled with each further
// attempt, at most Max, then a random time between half of that and all of it.
func (p RetryPolicy) Delay(attempts int) time.Duration {
	return jitter(p.ceiling(attempts))
}

// jitter returns a random time between half of a delay and all of it, so that relays that failed together do not
// come back together.
func jitter(delay time.Duration) time.Duration {
	half := delay / 2
	return half + rand.N(delay-half+1) //nolint:gosec // it keeps no secret
}

// ceiling returns the delay before jitter. No number of attempts makes it overflow.
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
