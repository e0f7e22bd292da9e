package natsjs

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// Ping checks that JetStream works. For a user who may not ask, it only checks that the server answers.
func (p *Publisher) Ping(ctx context.Context) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	l, err := p.link(ctx)
	if err != nil {
		return err
	}
	err = l.ask(ctx, apiAccount, nil, nil)
	if err == nil || failure.Is[deniedError](err) {
		return nil
	}
	return away(fmt.Errorf("ping NATS: %w", err))
}

// PingTopic checks that a stream has the topic's subject, a leader and room for more. With Create it creates the
// stream. For a user who may not ask, it does what Ping does.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	subject, err := p.config.subject(topic)
	if err != nil {
		return err
	}
	l, err := p.link(ctx)
	if err != nil {
		return err
	}
	info, err := p.infoOf(ctx, l, subject)
	switch {
	case failure.Is[deniedError](err):
		return nil
	case isOver(err):
		return away(fmt.Errorf("ping %s: %w", subject, err))
	case err != nil:
		return classify(err, subject)
	}
	return classify(info.refusal(subject), subject)
}

// streamInfo is what a stream says of itself.
type streamInfo struct {
	Config jetstream.StreamConfig `json:"config"`
	State  struct {
		Msgs     int64            `json:"messages"`
		Bytes    int64            `json:"bytes"`
		Subjects map[string]int64 `json:"subjects"`
	} `json:"state"`
}

// infoOf asks the stream that has a subject. It may be one that was just made.
func (p *Publisher) infoOf(ctx context.Context, l *link, subject string) (*streamInfo, error) {
	name, err := l.streamOf(ctx, subject)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if err := p.create(ctx, l, subject); err != nil {
			return nil, err
		}
		name = p.config.streamName(subject)
	}
	if p.config.Stream != "" && name != p.config.Stream {
		return nil, &apiError{ErrCode: codeOtherStream, Description: fmt.Sprintf("stream %q has the subject, and not %q", name, p.config.Stream)}
	}
	return l.infoOf(ctx, name, subject)
}

// infoOf asks a stream for itself, and for how many messages a subject has in it.
func (l *link) infoOf(ctx context.Context, name, subject string) (*streamInfo, error) {
	var info streamInfo
	err := l.ask(ctx, apiStream+name, map[string]string{"subjects_filter": subject}, &info)
	api, isAPI := errors.AsType[*apiError](err)
	switch {
	case isAPI && api.Code == 404:
		return nil, errUnknownStream // deleted meanwhile
	case isAPI, errors.Is(err, errNoJetStream), errors.Is(err, context.DeadlineExceeded):
		return nil, leaderlessError{name} // only the leader answers this
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// refusal returns why a stream would not accept a message to a subject; nil if it would.
func (i *streamInfo) refusal(subject string) error {
	c := &i.Config
	full := c.Discard == jetstream.DiscardNew && (c.MaxMsgs > 0 && i.State.Msgs >= c.MaxMsgs || c.MaxBytes > 0 && i.State.Bytes >= c.MaxBytes ||
		c.DiscardNewPerSubject && c.MaxMsgsPerSubject > 0 && i.State.Subjects[subject] >= c.MaxMsgsPerSubject)
	switch {
	case c.Sealed:
		return &apiError{ErrCode: codeSealed, Description: fmt.Sprintf("stream %q is sealed", c.Name)}
	case full:
		return &apiError{ErrCode: codeStoreFailed, Description: fmt.Sprintf("stream %q is full, and refuses what is new", c.Name)}
	}
	return nil
}
