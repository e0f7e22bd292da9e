package inboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
)

func testDone(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	want(t, "finish", begin(t, in, event).Finish(t.Context()), nil)
	wantBegin(t, in, event, inbox.ErrDone)
	wantBegin(t, h.Open(t, inbox.TTL{}), event, inbox.ErrDone)
	h.Expire(t)
	wantBegin(t, in, event, inbox.ErrDone)
}

func testInProgress(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{Processing: time.Minute}), id()
	claim := begin(t, in, event)
	if claim.TTL() != time.Minute {
		t.Errorf("the claim lasts %s, want a minute", claim.TTL())
	}
	wantBegin(t, in, event, inbox.ErrInProgress)
	_, err := h.Open(t, inbox.TTL{}).Begin(t.Context(), consumer, event)
	want(t, "begin", err, inbox.ErrInProgress)
	var progress *inbox.InProgressError
	if errors.As(err, &progress) && (progress.Left <= 0 || progress.Left > time.Minute) {
		t.Errorf("the claim is said to have %s left", progress.Left)
	}
	want(t, "finish", claim.Finish(t.Context()), nil)
}

func testApart(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	want(t, "finish", begin(t, in, event).Finish(t.Context()), nil)
	other, err := in.Begin(t.Context(), "shipping", event)
	want(t, "begin of another consumer", err, nil)
	begin(t, in, id())
	want(t, "finish of another consumer", other.Finish(t.Context()), nil)
}

// testNames has names that a store's own syntax could take for something else.
func testNames(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	for _, name := range []string{
		"a", "A", "a:b", "a:", ":a", "a b", "a'b", `a"b`, "a\\b", "*", "a*", "{a}", "a%", "caf\u00e9", "cafe\u0301", "\U0001F600",
		strings.Repeat("n", inbox.MaxConsumer),
	} {
		claim, err := in.Begin(t.Context(), name, event)
		if err != nil {
			t.Fatalf("begin of %q: %v", name, err)
		}
		if err := claim.Finish(t.Context()); err != nil {
			t.Fatalf("finish of %q: %v", name, err)
		}
		if _, err := in.Begin(t.Context(), name, event); !errors.Is(err, inbox.ErrDone) {
			t.Fatalf("begin of %q again: %v, want %v", name, err, inbox.ErrDone)
		}
	}
}

func testRefused(t *testing.T, h Harness) {
	t.Helper()
	in := h.Open(t, inbox.TTL{})
	for _, name := range []string{"", "a\x00", "a\nb", "\xff", strings.Repeat("n", inbox.MaxConsumer+1)} {
		if _, err := in.Begin(t.Context(), name, id()); err == nil {
			t.Errorf("the consumer %q was not refused", name)
		}
	}
	if _, err := in.Begin(t.Context(), consumer, uuid.Nil); err == nil {
		t.Error("an event without an id was not refused")
	}
}

func testExpired(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	begin(t, in, event) // and its consumer dies
	h.Expire(t)
	want(t, "finish", begin(t, in, event).Finish(t.Context()), nil)
	wantBegin(t, in, event, inbox.ErrDone)
}

func testRenewed(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{Processing: short}), id()
	claim := begin(t, in, event)
	tick := time.NewTicker(short / 5)
	defer tick.Stop()
	for range 7 {
		<-tick.C
		want(t, "renew", claim.Renew(t.Context()), nil)
	}
	wantBegin(t, in, event, inbox.ErrInProgress)
	want(t, "finish", claim.Finish(t.Context()), nil)
}

func testReleased(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	claim := begin(t, in, event)
	want(t, "release", claim.Release(t.Context()), nil)
	want(t, "release again", claim.Release(t.Context()), inbox.ErrLost)
	want(t, "renew", claim.Renew(t.Context()), inbox.ErrLost)
	begin(t, in, event)
	want(t, "finish by the one who released", claim.Finish(t.Context()), inbox.ErrLost)
}

// testStale has a claim end, and the event taken by another.
func testStale(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	stale := begin(t, in, event)
	h.Expire(t)
	want(t, "renew after the end", stale.Renew(t.Context()), inbox.ErrLost)
	want(t, "release after the end", stale.Release(t.Context()), inbox.ErrLost)
	claim := begin(t, in, event)
	want(t, "renew", stale.Renew(t.Context()), inbox.ErrLost)
	want(t, "release", stale.Release(t.Context()), inbox.ErrLost)
	want(t, "finish", stale.Finish(t.Context()), inbox.ErrLost)
	wantBegin(t, in, event, inbox.ErrInProgress)
	want(t, "renew by the holder", claim.Renew(t.Context()), nil)
	want(t, "release by the holder", claim.Release(t.Context()), nil)
	begin(t, in, event)
}

// testStaleAfterDone has the other one finish as well.
func testStaleAfterDone(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	stale := begin(t, in, event)
	h.Expire(t)
	claim := begin(t, in, event)
	want(t, "finish", claim.Finish(t.Context()), nil)
	for _, old := range []inbox.Claim{stale, claim} {
		want(t, "release", old.Release(t.Context()), inbox.ErrLost)
		want(t, "renew", old.Renew(t.Context()), inbox.ErrLost)
	}
	want(t, "finish of the stale one", stale.Finish(t.Context()), inbox.ErrLost)
	wantBegin(t, in, event, inbox.ErrDone)
}

func testFinishAgain(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	claim := begin(t, in, event)
	want(t, "finish", claim.Finish(t.Context()), nil)
	want(t, "finish again", claim.Finish(t.Context()), nil)
	wantBegin(t, in, event, inbox.ErrDone)
}

func testFinishLate(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	claim := begin(t, in, event)
	h.Expire(t)
	want(t, "finish", claim.Finish(t.Context()), nil)
	wantBegin(t, in, event, inbox.ErrDone)
}

func testCancelled(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := in.Begin(ctx, consumer, event)
	if err == nil || errors.Is(err, inbox.ErrDone) || errors.Is(err, inbox.ErrInProgress) {
		t.Fatalf("begin with a cancelled context: %v", err)
	}
	begin(t, in, event)
}
