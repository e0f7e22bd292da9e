package admin

import (
	"strconv"
	"testing"
	"time"
)

// clock is a clock that tests turn.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestLimiter(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	l := &limiter{debt: map[string]time.Time{}, now: c.now}
	for i := range loginBurst {
		if _, ok := l.try("address", "name"+strconv.Itoa(i)); !ok {
			t.Fatalf("try %d is refused", i+1)
		}
	}
	wait, ok := l.try("address", "another")
	if ok || wait <= 0 || wait > loginEvery {
		t.Errorf("one too many: %t, wait %s", ok, wait)
	}
	if _, ok := l.try("elsewhere", "another"); !ok {
		t.Error("somebody else is refused, too")
	}
	c.at = c.at.Add(wait)
	if _, ok := l.try("address", "another"); !ok {
		t.Error("having waited does not help")
	}
	// Who is right pays nothing.
	for range 3 * loginBurst {
		if _, ok := l.try("home", "ann"); !ok {
			t.Fatal("somebody who knows the password is refused")
		}
		l.giveBack("home", "ann")
	}
	for i := range maxLimited {
		l.debt[strconv.Itoa(i)] = c.at.Add(loginEvery)
	}
	if _, ok := l.try("new"); ok || len(l.debt) > maxLimited+20 {
		t.Errorf("the memory has no bound: %d, %t", len(l.debt), ok)
	}
	c.at = c.at.Add(time.Hour)
	if _, ok := l.try("new"); !ok || len(l.debt) > 1 {
		t.Errorf("what is paid off is not forgotten: %d, %t", len(l.debt), ok)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	s := &sessions{open: map[string]session{}, now: c.now}
	first := s.begin(Identity{Name: "ann", Role: Viewer})
	c.at = c.at.Add(sessionLife)
	if is, ok := s.find(first); !ok || is.Name != "ann" {
		t.Error("a session ends early")
	}
	c.at = c.at.Add(time.Second)
	if _, ok := s.find(first); ok {
		t.Error("a session has no end")
	}
	for i := range maxSessions {
		s.open[strconv.Itoa(i)] = session{since: c.at.Add(time.Duration(i))}
	}
	s.begin(Identity{Name: "bob"})
	if _, oldest := s.open["0"]; len(s.open) > maxSessions || oldest {
		t.Errorf("%d sessions are kept; the oldest: %t", len(s.open), oldest)
	}
}
