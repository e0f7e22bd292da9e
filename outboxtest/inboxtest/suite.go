// Package inboxtest has the conformance suite that every inbox.Inbox has to pass, and an
// inbox in memory for tests of consumers.
package inboxtest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
)

// Harness connects the suite to one store with nothing in it.
type Harness interface {
	// Open opens another inbox on the same store, as another process would.
	Open(t testing.TB, ttl inbox.TTL) inbox.Inbox
	// Expire ends every claim, as time would. What is done stays done.
	Expire(t testing.TB)
}

// Run runs the suite. open makes a harness on a fresh store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Harness){
		"done stays done":                              testDone,
		"one claim at a time":                          testInProgress,
		"consumers and events are apart":               testApart,
		"consumers may have odd names":                 testNames,
		"bad names and events are refused":             testRefused,
		"a claim that ended frees the event":           testExpired,
		"a renewed claim lasts":                        testRenewed,
		"a released event is free":                     testReleased,
		"a stale claim is refused":                     testStale,
		"a stale claim cannot undo":                    testStaleAfterDone,
		"finish again":                                 testFinishAgain,
		"finish after the end, if nobody has it":       testFinishLate,
		"a cancelled begin takes nothing":              testCancelled,
		"handle: once":                                 testHandleOnce,
		"handle: many at once, one effect":             testHandleRace,
		"handle: an error releases":                    testHandleError,
		"handle: a panic releases":                     testHandlePanic,
		"handle: a handler that ends its goroutine":    testHandleGoexit,
		"handle: a stopped consumer says what became":  testHandleStopped,
		"handle: a slow handler keeps its claim":       testHandleSlow,
		"handle: a lost claim ends the handler":        testHandleLost,
		"handle: an effect whose claim was taken over": testHandleTakenOver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

const (
	consumer = "billing"
	patience = 30 * time.Second
	// short is a processing TTL for tests that wait for renewals.
	short = time.Second
)

func id() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// begin takes an event that must be free.
func begin(t *testing.T, in inbox.Inbox, event uuid.UUID) inbox.Claim {
	t.Helper()
	claim, err := in.Begin(t.Context(), consumer, event)
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	if claim == nil {
		t.Fatal("begin answered neither a claim nor an error")
	}
	return claim
}

// wantBegin fails unless Begin answers this error.
func wantBegin(t *testing.T, in inbox.Inbox, event uuid.UUID, want error) {
	t.Helper()
	if _, err := in.Begin(t.Context(), consumer, event); !errors.Is(err, want) {
		t.Fatalf("begin: %v, want %v", err, want)
	}
}

// want fails unless a step of a claim answers this error.
func want(t *testing.T, step string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", step, err, want)
	}
}
