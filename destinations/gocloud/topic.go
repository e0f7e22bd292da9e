package gocloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"gocloud.dev/pubsub"
	_ "gocloud.dev/pubsub/mempubsub" // the driver for mem://

	"github.com/packfinderz/outbox"
)

// topic is an open one of any driver.
type topic struct {
	sender
	url  string
	name string // the URL without its options
	// users is how many use it now, and used when it was last asked for.
	users, used int
	// dropped is set, once, when it is closed over the heads of its users.
	dropped atomic.Bool
	drop    sync.Once
}

// outgoing is a message on its way.
type outgoing struct {
	*outbox.Message
	attributes map[string]string
	topic      *topic
	// sent is set when it is handed to the service.
	sent atomic.Bool
}

// encode makes the driver's message, which notes when it is sent.
func (o *outgoing) encode() *pubsub.Message {
	return &pubsub.Message{Body: o.Payload, Metadata: o.attributes, BeforeSend: func(func(any) bool) error {
		if o.topic.dropped.Load() {
			return errDropped
		}
		o.sent.Store(true)
		return nil
	}}
}

var errDropped = errors.New("the topic was closed")

// sender is what differs between the drivers.
type sender interface {
	// publish publishes one message.
	publish(ctx context.Context, o *outgoing) error
	// close waits for what is on its way until ctx is done, and then no longer.
	close(ctx context.Context) error
}

// openTopic opens a topic without connecting to it.
func openTopic(raw string) (*topic, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the destination is not a URL: %w", err)
	}
	t := &topic{url: raw, name: u.Scheme + "://" + u.Host + u.Path}
	ctx := context.Background()
	switch u.Scheme {
	case "awssns", "awssqs":
		t.sender, err = openAmazon(ctx, u)
	case "azuresb":
		t.sender, err = openServiceBus(u)
	default:
		var opened *pubsub.Topic
		opened, err = pubsub.DefaultURLMux().OpenTopicURL(ctx, u)
		t.sender = &plain{topic: opened, shared: u.Scheme == "mem"}
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", t.name, err)
	}
	return t, nil
}

// plain is a topic that is used as its driver has it.
type plain struct {
	topic *pubsub.Topic
	// shared is set where the driver gives everybody the same topic.
	shared bool
}

func (p *plain) publish(ctx context.Context, o *outgoing) error { return p.topic.Send(ctx, o.encode()) }

func (p *plain) close(ctx context.Context) error {
	if p.shared {
		return nil
	}
	return p.topic.Shutdown(ctx)
}
