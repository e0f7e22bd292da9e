package natsjs

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
)

// The client's own asynchronous publish keeps unanswered messages until its own timer ends, and may send one again
// after the caller has given up. Here a call owns what it sent, and forgets it when it returns.

// answer is what came back: data, or why nothing did.
type answer struct {
	data []byte
	err  error
	done bool
}

// round is one call's requests and their answers.
type round struct {
	requests []*nats.Msg
	window   chan struct{}

	mu      sync.Mutex
	answers []answer
	sent    []bool
	left    int
	done    chan struct{}
}

// exchange sends the requests, in order, and waits for an answer to each, at most until ctx ends.
func (l *link) exchange(ctx context.Context, requests []*nats.Msg) []answer {
	r := &round{
		requests: requests, window: l.window,
		answers: make([]answer, len(requests)), sent: make([]bool, len(requests)),
		left: len(requests), done: make(chan struct{}),
	}
	if len(requests) == 0 {
		return nil
	}
	l.mu.Lock()
	l.last++
	id, refused := l.last, l.refused
	l.rounds[id] = r
	l.mu.Unlock()
	switch {
	case refused != nil:
		r.fail(disconnectedError{refused}, "")
	case !l.conn.IsConnected():
		// Check after the round was entered: a later loss reaches it.
		r.fail(disconnectedError{l.absence()}, "")
	default:
		// In its own goroutine, because a write to a server that does not read may outlast the context.
		go l.send(ctx, r, l.inbox+strconv.FormatUint(id, 36)+".")
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		r.expire(ctx.Err())
	}
	l.mu.Lock()
	delete(l.rounds, id)
	l.mu.Unlock()
	return r.answers // all settled, and so never written again
}

// send writes the requests until one cannot be, or nobody waits for them any more.
func (l *link) send(ctx context.Context, r *round, reply string) {
	for i := range r.requests {
		select {
		case l.window <- struct{}{}:
		case <-r.done:
			return
		case <-ctx.Done():
			return
		}
		if !r.sending(i) {
			<-l.window
			continue
		}
		msg := r.requests[i]
		msg.Reply = reply + strconv.Itoa(i)
		if err := l.conn.PublishMsg(msg); err != nil {
			r.settle(i, answer{err: err})
		}
	}
}

// sending marks a request as sent, unless it was settled before.
func (r *round) sending(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers[i].done {
		return false
	}
	r.sent[i] = true
	return true
}

// answered takes the server's answer to one request.
func (l *link) answered(msg *nats.Msg) {
	round, place, _ := strings.Cut(strings.TrimPrefix(msg.Subject, l.inbox), ".")
	id, err := strconv.ParseUint(round, 36, 64)
	i, placeErr := strconv.Atoi(place)
	if err != nil || placeErr != nil {
		return // nobody's
	}
	l.mu.Lock()
	r := l.rounds[id]
	l.mu.Unlock()
	if r == nil || i < 0 || i >= len(r.requests) {
		return // of a call that has given up
	}
	if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		r.settle(i, answer{err: nats.ErrNoResponders})
		return
	}
	r.settle(i, answer{data: msg.Data})
}

// settle notes an answer; the first one counts.
func (r *round) settle(i int, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(i, a)
}

// fail gives this error to every request without an answer, or only to those of a subject.
func (r *round) fail(err error, subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.answers {
		if subject == "" || r.requests[i].Subject == subject {
			r.note(i, answer{err: err})
		}
	}
}

// expire gives every request that has no answer this error, if it was sent.
func (r *round) expire(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.answers {
		if !r.sent[i] {
			r.note(i, answer{err: outbox.ErrNotAttempted})
		}
		r.note(i, answer{err: err})
	}
}

func (r *round) note(i int, a answer) {
	if r.answers[i].done {
		return
	}
	a.done = true
	r.answers[i] = a
	if r.sent[i] {
		<-r.window
	}
	if r.left--; r.left == 0 {
		close(r.done)
	}
}
