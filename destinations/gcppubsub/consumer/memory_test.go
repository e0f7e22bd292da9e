package consumer

import (
	"testing"
	"testing/synctest"
	"time"
)

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
