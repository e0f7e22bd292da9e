package gocloud

import (
	"context"
	"fmt"
	"net/url"

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
}

// sender is what differs between the drivers.
type sender interface {
	// publish publishes one message.
	publish(ctx context.Context, message *outbox.Message, attributes map[string]string) error
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
		t.sender, err = openPlain(ctx, u)
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

func openPlain(ctx context.Context, u *url.URL) (*plain, error) {
	opened, err := pubsub.DefaultURLMux().OpenTopicURL(ctx, u)
	if err != nil {
		return nil, err
	}
	return &plain{topic: opened, shared: u.Scheme == "mem"}, nil
}

func (p *plain) publish(ctx context.Context, message *outbox.Message, attributes map[string]string) error {
	return p.topic.Send(ctx, &pubsub.Message{Body: message.Payload, Metadata: attributes})
}

func (p *plain) close(ctx context.Context) error {
	if p.shared {
		return nil
	}
	return p.topic.Shutdown(ctx)
}
