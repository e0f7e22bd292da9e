package publishertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// Fails fails the test unless the error is of the class and has the words, and is not the word
// for a message that was not attempted.
func Fails(t testing.TB, err error, class outbox.Class, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one of class %d with %q", class, words)
		return
	}
	if outbox.Classify(err) != class || errors.Is(err, outbox.ErrNotAttempted) {
		t.Errorf("got %v, of class %d; want class %d", err, outbox.Classify(err), class)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// Away fails the test unless the error says that the destination takes nothing, or only its topic,
// and whether that is a setting.
func Away(t testing.TB, err error, topic, setting bool, words ...string) {
	t.Helper()
	Fails(t, err, outbox.ClassUnavailable, words...)
	var unavailable *outbox.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Topic != topic || unavailable.Setting != setting {
		t.Errorf("%v is %+v; want topic %t, setting %t", err, unavailable, topic, setting)
	}
}

// Fates compares results with what was expected of them: "" for success, else "rejected" (terminal),
// "retry" (counted), "away" and "misconfigured" (the destination), "topic away" and "topic missing"
// (its topic), "unclear", "silence" (no answer in time) or "waits" (not attempted).
func Fates(t testing.TB, errs []error, fates ...string) {
	t.Helper()
	for i, err := range errs {
		if got := Fate(err); got != fates[i] {
			t.Errorf("message %d: %q (%v), want %q", i, got, err, fates[i])
		}
	}
}

// Fate is one of those words.
func Fate(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, outbox.ErrNotAttempted) {
		return "waits"
	}
	var away *outbox.UnavailableError
	var unclear *outbox.UnclearError
	switch outbox.Classify(err) {
	case outbox.ClassTerminal:
		return "rejected"
	case outbox.ClassUnavailable:
		if !errors.As(err, &away) {
			return "away"
		}
		return map[bool]map[bool]string{
			false: {false: "away", true: "misconfigured"}, true: {false: "topic away", true: "topic missing"},
		}[away.Topic][away.Setting]
	case outbox.ClassUnclear:
		if errors.As(err, &unclear) {
			return "unclear"
		}
		return "silence"
	default:
		return "retry"
	}
}

// Answers waits until the publisher's broker answers a ping.
func Answers(t testing.TB, publisher outbox.Pinger) {
	t.Helper()
	await.Until(t, "the broker to answer", func() bool { return publisher.Ping(t.Context()) == nil })
}

// Ends gives what a call answers, and fails the test if the call does not end.
func Ends[T any](t testing.TB, call func() T) (answer T) {
	t.Helper()
	answers := make(chan T, 1)
	go func() { answers <- call() }()
	select {
	case answer = <-answers:
	case <-time.After(patience):
		t.Fatal("the call does not end")
	}
	return answer
}

// Abandon publishes, and has the deadline pass when ready has returned. It fails unless Publish
// ends then.
func Abandon(t testing.TB, publisher outbox.Publisher, messages []outbox.Message, ready func()) []error {
	t.Helper()
	over := make(chan struct{})
	results := make(chan []error, 1)
	go func() { results <- publisher.Publish(deadline{t.Context(), over}, messages) }()
	ready()
	close(over)
	return Ends(t, func() []error { return <-results })
}

// deadline is a context whose deadline passes when the test says so.
type deadline struct {
	context.Context

	over <-chan struct{}
}

// Done is closed when the deadline has passed.
func (d deadline) Done() <-chan struct{} { return d.over }

// Err says that it has.
func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Cut takes the broker away while batches are under way, and brings it back. What was
// acknowledged is there then; what failed says that the broker was away.
func Cut(t testing.TB, broker Broker, publisher interface {
	outbox.Publisher
	outbox.Pinger
},
) {
	t.Helper()
	acknowledged := make(map[string]bool)
	started, failed := make(chan struct{}), make(chan []error, 1)
	go func() {
		for n := 0; ; n++ {
			messages := Messages(500)
			var failures []error
			for i, err := range publisher.Publish(context.WithoutCancel(t.Context()), messages) {
				if err == nil {
					acknowledged[messages[i].ID.String()] = true
				} else if !errors.Is(err, outbox.ErrNotAttempted) {
					failures = append(failures, err)
				}
			}
			if failures != nil {
				failed <- failures
				return
			}
			if n == 2 {
				close(started)
			}
		}
	}()
	Ends(t, func() struct{} { return <-started })
	broker.Stop(t)
	for _, err := range Ends(t, func() []error { return <-failed }) {
		Fails(t, err, outbox.ClassUnavailable)
	}
	Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable)
	broker.Start(t)
	Answers(t, publisher)
	Deliver(t, publisher, Messages(10))
	for _, r := range broker.Received(t) {
		delete(acknowledged, r.ID.String())
	}
	if len(acknowledged) != 0 {
		t.Errorf("%d acknowledged messages are gone", len(acknowledged))
	}
}
