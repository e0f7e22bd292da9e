package admin

import (
	"maps"
	"sync"
	"time"
)

const (
	// loginBurst is how many logins may fail at once, from an address or for a name; one more is
	// allowed after each loginEvery.
	loginBurst = 10
	loginEvery = 6 * time.Second
	// maxLimited bounds the memory of the limiter. When it is full, nobody new may try.
	maxLimited = 20_000
)

// limiter slows down who guesses passwords. Every try costs, before it is looked at, so that a
// thousand at once do not slip through; who is right gets it back.
type limiter struct {
	mu   sync.Mutex
	debt map[string]time.Time // when all that was tried will be paid off
	now  func() time.Time
}

// try takes a try from all of the keys, or says how long to wait.
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

// giveBack returns a try to all of the keys.
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
