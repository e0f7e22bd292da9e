// Package consumetest is what the tests of consumers share: handlers that remember, consumers
// that end with the test, and a suite that the consumer of every broker passes.
package consumetest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
)

// patience limits every wait for something that must happen. It is not a measure of speed.
const patience = time.Minute

// Handler is one function for all events: a set of handlers, as consume.Config takes it.
type Handler func(ctx context.Context, message outbox.Message) error

// Handles is true: the function is for every type.
func (Handler) Handles(string) bool { return true }

// HandlesAll is true.
func (Handler) HandlesAll() bool { return true }

// Publish handles the messages one after the other.
func (h Handler) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		errs[i] = h(ctx, messages[i])
	}
	return errs
}

// signal tells one who waits that something has changed.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default: // it has been told already
	}
}

// await returns when something holds, looking whenever there was a signal.
func (s signal) await(t testing.TB, holds func() bool, inVain func()) {
	t.Helper()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-s:
		case <-limit:
			inVain()
			return
		}
	}
}

// Record has the messages that were handled, in order, and can be waited for.
type Record struct {
	mu      sync.Mutex
	list    []outbox.Message
	changed signal
}

// NewRecord makes an empty one.
func NewRecord() *Record { return &Record{changed: newSignal()} }

// Add adds a message.
func (r *Record) Add(message outbox.Message) {
	r.mu.Lock()
	r.list = append(r.list, message)
	r.mu.Unlock()
	r.changed.send()
}

// Handle is a Handler that adds every message and never fails.
func (r *Record) Handle(_ context.Context, message outbox.Message) error {
	r.Add(message)
	return nil
}

// All are the messages so far.
func (r *Record) All() []outbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Await waits until there are at least n messages.
func (r *Record) Await(t testing.TB, n int) []outbox.Message {
	t.Helper()
	return r.AwaitThat(t, func(list []outbox.Message) bool { return len(list) >= n })
}

// AwaitThat waits until something holds of the messages.
func (r *Record) AwaitThat(t testing.TB, holds func([]outbox.Message) bool) (list []outbox.Message) {
	t.Helper()
	r.changed.await(t, func() bool {
		list = r.All()
		return holds(list)
	}, func() { t.Fatalf("only %d messages were handled", len(list)) })
	return list
}

// Counts is how often each event is in a list.
func Counts(list []outbox.Message) map[uuid.UUID]int {
	counts := make(map[uuid.UUID]int)
	for i := range list {
		counts[list[i].ID]++
	}
	return counts
}

// Log is a log that can be waited for.
type Log struct {
	mu      sync.Mutex
	text    strings.Builder
	changed signal
}

// NewLog makes an empty one.
func NewLog() *Log { return &Log{changed: newSignal()} }

// Write takes a line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changed.send()
	return l.text.Write(line)
}

// Logger writes to it.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often some words were written.
func (l *Log) Count(words string) int { return strings.Count(l.String(), words) }

// Await waits until some words were written.
func (l *Log) Await(t testing.TB, words string) {
	t.Helper()
	l.changed.await(t, func() bool { return l.Count(words) > 0 }, func() { t.Fatalf("nothing was logged of %q:\n%s", words, l) })
}

// Reports is a hook that passes on what became of deliveries.
type Reports chan consume.Report

// OnDelivery passes a report on.
func (r Reports) OnDelivery(report consume.Report) { r <- report }

// Next waits for a delivery with this outcome.
func (r Reports) Next(t testing.TB, outcome consume.Outcome) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case report := <-r:
			if report.Outcome == outcome {
				return
			}
		case <-limit:
			t.Fatalf("nothing was %s", outcome)
		}
	}
}
