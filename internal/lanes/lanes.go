// Package lanes publishes messages to destinations that take one message per call: messages of one key one after
// the other, and several keys at once.
package lanes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/packfinderz/outbox"
)

// Lanes limits how many messages are sent at once, over all batches.
type Lanes struct {
	slots   chan struct{}
	timeout time.Duration
}

// New returns n lanes for calls that may take as long as timeout.
func New(n int, timeout time.Duration) *Lanes {
	return &Lanes{slots: make(chan struct{}, n), timeout: timeout}
}

// Publish calls send for each message and answers as outbox.Publisher does. After a message fails, the later ones
// of its key are not sent; after an answer that the destination is unavailable, no message is. They are answered
// with outbox.ErrNotAttempted, and so are messages that there is no time left for. It marks unclear answers as
// Overtake does.
func (l *Lanes) Publish(ctx context.Context, messages []outbox.Message, send func(context.Context, *outbox.Message) error) []error {
	errs := make([]error, len(messages))
	var away atomic.Bool
	latest, bounded := l.latest(ctx)
	begun, ended := make([]time.Time, len(messages)), make([]time.Time, len(messages))
	queues := queuesOf(messages)
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(cap(l.slots), len(queues)) {
		running.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(queues)); at = next.Add(1) - 1 {
				stopped := false
				for _, i := range queues[at] {
					if stopped || away.Load() || !l.enter(ctx) {
						errs[i] = outbox.ErrNotAttempted
						continue
					}
					if bounded && time.Now().After(latest) {
						errs[i] = outbox.ErrNotAttempted
					} else {
						begun[i] = time.Now()
						errs[i] = send(ctx, &messages[i])
						ended[i] = time.Now()
					}
					<-l.slots
					if errs[i] != nil {
						stopped = true
						if isAway(errs[i]) {
							away.Store(true)
						}
					}
				}
			}
		})
	}
	running.Wait()
	Overtake(messages, errs, begun, ended)
	return errs
}

// Overtake marks the unclear answers after which another message of the topic was sent and got through. begun and
// ended are when each message was sent and answered.
func Overtake(messages []outbox.Message, errs []error, begun, ended []time.Time) {
	last := make(map[string]time.Time) // when the last that got through was sent, by topic
	for i, err := range errs {
		if topic := messages[i].Topic; err == nil && begun[i].After(last[topic]) {
			last[topic] = begun[i]
		}
	}
	for i, err := range errs {
		if err == nil || errors.Is(err, outbox.ErrNotAttempted) || outbox.Classify(err) != outbox.ClassUnclear {
			continue
		}
		if last[messages[i].Topic].After(ended[i]) {
			errs[i] = &outbox.UnclearError{Err: err, Overtaken: true}
		}
	}
}

// isAway reports whether an error is about the destination as a whole.
func isAway(err error) bool {
	var unavailable *outbox.UnavailableError
	return outbox.Classify(err) == outbox.ClassUnavailable && (!errors.As(err, &unavailable) || !unavailable.Topic)
}

// enter takes a lane; it reports false when ctx ended first.
func (l *Lanes) enter(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case l.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// latest is when the last call may begin: a timeout before the batch's deadline or, if that is too near, after half
// of the time that is left.
func (l *Lanes) latest(ctx context.Context) (time.Time, bool) {
	deadline, bounded := ctx.Deadline()
	return deadline.Add(-min(l.timeout, time.Until(deadline)/2)), bounded
}

// queuesOf groups the indexes of the messages by key, in order; a message without a key is a group of its own.
func queuesOf(messages []outbox.Message) [][]int {
	queues := make([][]int, 0, len(messages))
	places := make(map[string]int, len(messages))
	for i := range messages {
		key := messages[i].Key
		if at, ok := places[key]; ok && key != "" {
			queues[at] = append(queues[at], i)
			continue
		}
		places[key] = len(queues)
		queues = append(queues, []int{i})
	}
	return queues
}
