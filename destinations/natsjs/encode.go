package natsjs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/internal/header"
	"github.com/packfinderz/outbox/destinations/wire"
)

// maxSubject keeps a subject well within a server's control line, which has 4,096 bytes by default.
const maxSubject = 1024

// encode makes a NATS message of an event's.
func (c *Config) encode(m *outbox.Message) (*nats.Msg, error) {
	subject, err := c.subject(m.Topic)
	if err != nil {
		return nil, err
	}
	attributes := header.Binding.Attributes(c.Format, m)
	headers := make(nats.Header, len(attributes)+3)
	values := make([]string, 0, len(attributes)+3)
	// One array for all values: a slice of its own for each would be most of the work.
	set := func(name, value string) {
		values = append(values, value)
		headers[name] = values[len(values)-1 : len(values) : len(values)]
	}
	for _, a := range attributes {
		if err := checkHeader(a.Name, a.Value); err != nil {
			return nil, outbox.Rejected(err)
		}
		set(a.Name, a.Value)
	}
	// A key that cannot be a header is no reason to refuse the event: only its consumers' order depends on it.
	if !c.Format.CloudEvents && m.Key != "" && checkHeader(wire.EventKey, m.Key) == nil {
		set(wire.EventKey, m.Key)
	}
	// A dead letter has the id of its event, which may be in the same stream, and several consumers may make one:
	// the stream would drop it as a duplicate.
	if m.Headers[wire.DeadReason] == "" {
		set(jetstream.MsgIDHeader, m.DuplicateID())
	}
	if c.Stream != "" {
		set(jetstream.ExpectedStreamHeader, c.Stream)
	}
	return &nats.Msg{Subject: subject, Header: headers, Data: m.Payload}, nil
}

// subject is where a topic's messages go.
func (c *Config) subject(topic string) (string, error) {
	if topic == "" {
		return "", outbox.ErrNoTopic
	}
	subject := c.SubjectPrefix + topic
	if err := checkSubject(subject); err != nil {
		return "", outbox.Rejected(fmt.Errorf("topic %.100q cannot be a NATS subject: %w", topic, err))
	}
	return subject, nil
}

// checkSubject rejects a subject that no message can be published to.
func checkSubject(subject string) error {
	if len(subject) > maxSubject {
		return fmt.Errorf("it is longer than %d bytes", maxSubject)
	}
	if strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_INBOX.") {
		return errors.New("subjects that begin with $ or _INBOX. are the server's own")
	}
	for token := range strings.SplitSeq(subject, ".") {
		switch {
		case token == "":
			return errors.New("a part between its dots is empty")
		case token == "*" || token == ">":
			return errors.New("* and > are for those who read")
		case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return errors.New("it has a space or a control character")
		}
	}
	return nil
}

// checkHeader rejects a header that would arrive changed, or not at all.
func checkHeader(name, value string) error {
	switch {
	case name == "":
		return errors.New("a header without a name cannot be sent to NATS")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }):
		return fmt.Errorf("header %.100q cannot be sent to NATS: its name has a colon, a space or a character beyond ASCII", name)
	case header.IsOwn(name):
		return fmt.Errorf("header %.100q cannot be sent to NATS: names that begin with %s are the server's own", name, header.OwnPrefix)
	case strings.ContainsAny(value, "\r\n"):
		return fmt.Errorf("header %.100q cannot be sent to NATS: its value has a line break", name)
	case value != strings.Trim(value, " \t"):
		return fmt.Errorf("header %.100q cannot be sent to NATS: its value begins or ends with a space", name)
	}
	return nil
}
