package consumer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// What is remembered of failures is bounded, and what failed lately is among it.
func TestAttempts(t *testing.T) {
	t.Parallel()
	a := newAttempts(100)
	for n := range 1000 {
		a.failed(fmt.Sprint(n))
		a.failed("always")
	}
	if next := a.next("always"); next != 1001 {
		t.Errorf("the next attempt is %d", next)
	}
	if n := len(a.young) + len(a.old); n > 100 {
		t.Errorf("%d are remembered", n)
	}
	a.forget("always")
	if next := a.next("always"); next != 1 {
		t.Errorf("after it was handled the next attempt is %d", next)
	}
}

// A key waits for its message that failed, but not without end.
func TestHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHolds(2)
		h.hold("", "x")
		h.hold("k", "1")
		if h.refuse("", "y") || h.refuse("k", "1") || !h.refuse("k", "2") || h.refuse("l", "2") {
			t.Error("the wrong ones wait")
		}
		h.release("k", "2")
		if !h.refuse("k", "3") {
			t.Error("another message has released it")
		}
		if h.refuse("k", "2") || h.refuse("k", "4") {
			t.Error("what came again was refused again")
		}
		h.hold("k", "1")
		h.hold("l", "1")
		h.hold("m", "1")
		if h.refuse("m", "2") || len(h.keys) != 2 {
			t.Error("there is no limit")
		}
		<-time.After(holdFor + time.Second) // on the bubble's clock
		if h.refuse("k", "2") {
			t.Error("it waits without end")
		}
		h.hold("m", "1")
		h.hold("n", "1")
		if !h.refuse("n", "2") || len(h.keys) != 2 {
			t.Error("what is over was not dropped")
		}
		h.release("n", "1")
		if h.refuse("n", "2") {
			t.Error("it was not released")
		}
	})
}
