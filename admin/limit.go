package admin

import (
	"maps"
	"sync"
	"time"
)

const (
	// loginBurst is how many logins in a row may fail, from an address or for a name; one more is allowed after
	// each loginEvery.
	loginBurst = 10
	loginEvery = 6 * time.Second
	// maxLimited bounds the memory of the limiter. When it is full, nobody new may try.
	maxLimited = 20_000
)

// limiter slows down password guessing. Every try is charged before it is checked, so that a thousand at once do
// not slip through; a correct one is refunded.
type limiter struct {
	mu   sync.Mutex
	debt map[string]time.Time // when all tries will be paid off
	now  func() time.Time
}

// try charges all keys for a try, or says how long to wait.
func (l *limiter) try(keys ...string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, key := range keys {
		wait = max(wait, latest(l.debt[key], now).Sub(now)-(loginBurst-1)*loginEvery)
	}
	if wait <= 0 && len(l.debt) >= maxLimited {
		maps.DeleteFunc(l.debt, func(_ string, at time.Time) bool { return at.Before(now) }) // what is paid off
		if len(l.debt) >= maxLimited {
			wait = loginEvery
		}
	}
	if wait > 0 {
		return wait, false
	}
	for _, key := range keys {
		l.debt[key] = latest(l.debt[key], now).Add(loginEvery)
	}
	return 0, true
}

// giveBack refunds a try to all keys.
func (l *limiter) giveBack(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if at, ok := l.debt[key]; ok {
			l.debt[key] = at.Add(-loginEvery)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
