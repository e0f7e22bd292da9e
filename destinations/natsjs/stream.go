package natsjs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/destinations/internal/failure"
	"github.com/packfinderz/outbox/destinations/natsjs/internal/streams"
)

// JetStream's API, as far as it is asked here.
const (
	apiAccount = "$JS.API.INFO"
	apiNames   = "$JS.API.STREAM.NAMES"
	apiStream  = "$JS.API.STREAM.INFO."
)

// askTimeout bounds a question to JetStream.
const askTimeout = 5 * time.Second

// resolveUnknown finds out why nobody accepted a message: its subject has no stream, the stream has no leader, or
// the server has no JetStream. A publisher sees the same answer for all three. With Create it creates a missing
// stream and sends the messages again.
func (p *Publisher) resolveUnknown(ctx context.Context, l *link, requests []*nats.Msg, answers []answer) {
	var again []int
	verdicts := make(map[string]error)
	for i := range answers {
		if !errors.Is(answers[i].err, nats.ErrNoResponders) {
			continue
		}
		subject := requests[i].Subject
		verdict, known := verdicts[subject]
		if !known {
			verdict = p.resolve(ctx, l, subject)
			verdicts[subject] = verdict
		}
		answers[i].err = verdict
		if verdict == nil {
			again = append(again, i)
		}
	}
	if len(again) == 0 {
		return
	}
	retry := make([]*nats.Msg, len(again))
	for i, place := range again {
		retry[i] = requests[place]
	}
	for i, a := range l.exchange(ctx, retry) {
		if errors.Is(a.err, nats.ErrNoResponders) {
			a.err = errUnknownStream
		}
		answers[again[i]] = a
	}
}

// resolve returns why nobody accepted a message to this subject; nil if it created a stream for it.
func (p *Publisher) resolve(ctx context.Context, l *link, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	stream, err := l.streamOf(ctx, subject)
	switch {
	case failure.Is[deniedError](err):
		return errUnknownStream // as far as this user may know
	case err != nil:
		return disconnectedError{err}
	case stream != "":
		return leaderlessError{stream}
	}
	return p.create(ctx, l, subject)
}

// create makes the stream of a subject, if that is wanted.
func (p *Publisher) create(ctx context.Context, l *link, subject string) error {
	if !p.config.Create {
		return errUnknownStream
	}
	err := streams.Create(ctx, l.conn, p.config.streamName(subject), subject)
	if refusal, ok := errors.AsType[*jetstream.APIError](err); ok {
		return uncreatedError{err, int(refusal.ErrorCode)}
	}
	if err != nil {
		return disconnectedError{err}
	}
	return nil
}

// ask sends one request to JetStream's API, and decodes the answer into reply unless that is nil.
func (l *link) ask(ctx context.Context, subject string, question, reply any) error {
	msg := &nats.Msg{Subject: subject}
	if question != nil {
		data, err := json.Marshal(question)
		if err != nil {
			return fmt.Errorf("ask JetStream: %w", err)
		}
		msg.Data = data
	}
	a := l.exchange(ctx, []*nats.Msg{msg})[0]
	if errors.Is(a.err, nats.ErrNoResponders) {
		return errNoJetStream
	}
	var refusal struct {
		Error *apiError `json:"error"`
	}
	err := a.err
	if err == nil {
		err = json.Unmarshal(a.data, &refusal)
	}
	if err == nil && refusal.Error == nil && reply != nil {
		err = json.Unmarshal(a.data, reply)
	}
	switch {
	case err != nil:
		return fmt.Errorf("ask JetStream: %w", err)
	case refusal.Error != nil:
		return refusal.Error
	}
	return nil
}

// streamOf returns the stream that has a subject; "" if none has.
func (l *link) streamOf(ctx context.Context, subject string) (string, error) {
	var reply struct {
		Streams []string `json:"streams"`
	}
	if err := l.ask(ctx, apiNames, map[string]string{"subject": subject}, &reply); err != nil || len(reply.Streams) == 0 {
		return "", err
	}
	return reply.Streams[0], nil
}

// streamName is the stream that Create makes for a subject.
func (c *Config) streamName(subject string) string { return cmp.Or(c.Stream, streams.Name(subject)) }
