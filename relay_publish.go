package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// Why a message was not handed to the publisher.
var (
	errInFlight    = errors.New("the event is still being published from an earlier claim")
	errTopicClosed = errors.New("the topic is closed")
	errOnTrial     = errors.New("the route is tried with other events")
)

// isUntried reports whether a message was not tried.
func isUntried(err error) bool {
	return isOneOf(err, ErrNotAttempted, errInFlight, errTopicClosed, errOnTrial)
}

// publish checks every message and hands those that pass to the publisher, in order. taken marks the messages that
// are already being published; nil if none are. A trial sends only a few.
func (r *Relay) publish(ctx context.Context, messages []Message, taken []bool, trial bool) *attempt {
	a := &attempt{messages: messages, began: r.routes.begun()}
	ready := messages
	if r.config.Registry != nil || r.config.DefaultTopic != "" || slices.ContainsFunc(messages, isInvalid) {
		ready = r.check(a)
	}
	waits := r.routes.pick(ready, trial)
	if a.errs == nil && waits == nil && !slices.Contains(taken, true) {
		a.errs = r.sendAll(ctx, messages)
		return a
	}
	if a.errs == nil {
		a.errs = make([]error, len(messages))
	}
	a.unsent = make([]bool, len(messages))
	send := make([]Message, 0, len(messages))
	places := make([]int, 0, len(messages))
	// On a store that keeps order, nothing may overtake a message that is not sent.
	stopped := make(map[string]bool)
	for i := range messages {
		key := messages[i].Key
		switch {
		case stopped[key]:
			a.errs[i] = ErrNotAttempted
		case a.errs[i] != nil: // it did not pass the check
		case taken != nil && taken[i]:
			a.errs[i] = errInFlight
		case waits != nil && waits[i] == waitClosed:
			a.errs[i] = errTopicClosed
		case waits != nil && waits[i] == waitTrial:
			a.errs[i] = errOnTrial
		}
		if a.errs[i] != nil {
			a.unsent[i] = true
			stopped[key] = key != "" && r.config.Store.Traits().InOrder
			continue
		}
		send, places = append(send, ready[i]), append(places, i)
	}
	if len(send) == 0 {
		return a
	}
	for i, err := range r.sendAll(ctx, send) {
		a.errs[places[i]] = err
	}
	return a
}

func isInvalid(m Message) bool { return m.Invalid != nil }

// check checks every message against the registry and sets its topic, in a copy. A message that does not pass gets
// an error.
func (r *Relay) check(a *attempt) []Message {
	a.errs, a.topics = make([]error, len(a.messages)), make([]string, len(a.messages))
	ready := slices.Clone(a.messages)
	for i := range ready {
		m := &ready[i]
		switch {
		case m.Invalid != nil:
			a.errs[i] = terminal(ReasonInvalidRow, m.Invalid)
		case r.config.Registry != nil:
			a.errs[i] = r.config.Registry.Check(m)
		}
		if m.Topic == "" {
			m.Topic = r.config.DefaultTopic
		}
		a.topics[i] = m.Topic
	}
	return ready
}

// sendAll hands messages to the publisher. Messages that broke a connection before, or timed out, come last and one
// by one: they and the others must not fail because of each other, and the relay must learn whether each gets
// through.
func (r *Relay) sendAll(ctx context.Context, messages []Message) []error {
	last := r.routes.alone(messages)
	if len(last) == 0 || len(messages) == 1 {
		return r.send(ctx, messages)
	}
	errs := make([]error, len(messages))
	first := make([]Message, 0, len(messages))
	var places []int
	stopped := make(map[string]bool)
	for i := range messages {
		switch key := messages[i].Key; {
		case key != "" && stopped[key]:
			errs[i] = ErrNotAttempted
		case slices.Contains(last, i):
			stopped[key] = true
		default:
			first, places = append(first, messages[i]), append(places, i)
		}
	}
	broken := false
	if len(first) > 0 {
		for i, err := range r.send(ctx, first) {
			errs[places[i]] = err
			broken = broken || isAway(err) || isSilence(err)
		}
	}
	for _, i := range last {
		if broken || ctx.Err() != nil || errs[i] != nil {
			errs[i] = ErrNotAttempted
			continue
		}
		errs[i] = r.call(ctx, messages[i:i+1])[0]
		broken = isAway(errs[i]) || isSilence(errs[i])
	}
	return errs
}

// isAway reports whether an error closes the whole destination.
func isAway(err error) bool {
	return err != nil && Classify(err) == ClassUnavailable && !ofTopic(err)
}

// send hands messages to the publisher, one of a key at a time if the relay itself must keep the order.
func (r *Relay) send(ctx context.Context, messages []Message) []error {
	if r.inOrder {
		return PublishByKey(ctx, messages, r.call)
	}
	return r.call(ctx, messages)
}

// call calls the publisher. A panic does not say which of many messages caused it, so each is tried alone: the
// others must not fail because of it. After a message fails, the later ones of its key are not tried.
func (r *Relay) call(ctx context.Context, messages []Message) []error {
	errs, panicked := r.callOnce(ctx, messages)
	if !panicked || len(messages) == 1 {
		return errs
	}
	failed := make(map[string]bool)
	var guilty []int
	works := false
	for i := range messages {
		key := messages[i].Key
		if ctx.Err() != nil || key != "" && failed[key] {
			errs[i] = ErrNotAttempted
			continue
		}
		one, panicked := r.callOnce(ctx, messages[i:i+1])
		errs[i] = one[0]
		failed[key] = errs[i] != nil
		works = works || errs[i] == nil
		if panicked {
			guilty = append(guilty, i)
		}
	}
	// A publisher that panics, works and panics again does so because of the message.
	for _, i := range guilty {
		if !works || ctx.Err() != nil {
			break
		}
		again, panicked := r.callOnce(ctx, messages[i:i+1])
		if errs[i] = again[0]; panicked {
			errs[i] = &UnclearError{Err: errs[i], proven: true}
		}
	}
	return errs
}

// callOnce calls the publisher in its own goroutine, because a publisher may end its goroutine.
func (r *Relay) callOnce(ctx context.Context, messages []Message) (errs []error, panicked bool) {
	all := func(err error) []error { return slices.Repeat([]error{err}, len(messages)) }
	done := make(chan struct{})
	returned := false
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				r.log.Error("publisher panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
				errs, panicked = all(panicError(value)), true
			}
		}()
		errs = r.handOver(ctx, messages)
		returned = true
	}()
	<-done
	switch {
	case panicked:
		return errs, true
	case !returned:
		return all(panicError("the publisher has ended its goroutine")), true
	case len(errs) != len(messages): // it is unknown which are missing, so no answer can be used
		err := fmt.Errorf("the publisher is broken: it answered for %d of %d messages", len(errs), len(messages))
		return all(Misconfigured(err)), false
	}
	return errs, false
}
