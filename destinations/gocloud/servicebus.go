package gocloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"gocloud.dev/pubsub/azuresb"

	"github.com/packfinderz/outbox"
)

// maxSessionID is how many characters a session's id has in Service Bus.
const maxSessionID = 128

// serviceBus is a topic or queue of Azure Service Bus. It uses the driver's URLs and client, but not its way of
// sending: that repeats every unknown failure forever, so an outage or an oversized message would look like a slow
// service. The driver does not close the connection either.
type serviceBus struct {
	client interface {
		Close(ctx context.Context) error
	} // an azservicebus.Client
	sender busSender
	// ask opens a link to the topic or queue, which tells whether it is there.
	ask func(context.Context) error
}

// busSender is what is used of azservicebus.Sender.
type busSender interface {
	SendMessage(ctx context.Context, message *azservicebus.Message, options *azservicebus.SendMessageOptions) error
	Close(ctx context.Context) error
}

func openServiceBus(u *url.URL) (*serviceBus, error) {
	if u.RawQuery != "" {
		return nil, errors.New("there are no options but format and source")
	}
	client, err := newClient(&azservicebus.ClientOptions{
		// The relay waits for a service that is away; this is for a connection that broke.
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 2, RetryDelay: 250 * time.Millisecond, MaxRetryDelay: 2 * time.Second},
	})
	if err != nil {
		return nil, err
	}
	name := path.Join(u.Host, u.Path)
	sender, err := azuresb.NewSender(client, name, nil)
	if err != nil {
		return nil, errors.Join(err, client.Close(context.Background()))
	}
	return &serviceBus{client: client, sender: sender, ask: func(ctx context.Context) error {
		asking, err := client.NewSender(name, nil)
		if err != nil {
			return err
		}
		_, err = asking.NewMessageBatch(ctx, nil)
		return errors.Join(err, asking.Close(ctx))
	}}, nil
}

// newClient takes the address and the credentials from where the driver takes them.
func newClient(options *azservicebus.ClientOptions) (*azservicebus.Client, error) {
	if secret := os.Getenv("SERVICEBUS_CONNECTION_STRING"); secret != "" {
		client, err := azuresb.NewClientFromConnectionString(secret, options)
		if err != nil {
			// What is wrong with it is not repeated, as it could be the key.
			return nil, errors.New("SERVICEBUS_CONNECTION_STRING is not a connection string of Service Bus")
		}
		return client, nil
	}
	if host := os.Getenv("AZURE_SERVICEBUS_HOSTNAME"); host != "" {
		return azuresb.NewClientFromServiceBusHostname(host, options)
	}
	return nil, errors.New("set SERVICEBUS_CONNECTION_STRING or AZURE_SERVICEBUS_HOSTNAME in the environment")
}

// publish sends a message with its duplicate id, by which the service drops duplicates if the topic has that
// switched on, and its key as the session, which orders it if the topic has sessions.
func (s *serviceBus) publish(ctx context.Context, o *outgoing) error {
	message := o.Message
	id := message.DuplicateID()
	encoded := &azservicebus.Message{MessageID: &id, Body: message.Payload, ApplicationProperties: make(map[string]any, len(o.attributes))}
	for name, value := range o.attributes {
		encoded.ApplicationProperties[name] = value
	}
	if message.ContentType != "" {
		encoded.ContentType = &message.ContentType
	}
	if len(message.Key) > maxSessionID {
		return outbox.Rejected(fmt.Errorf("the key has %d bytes; the session of a message has at most %d in Service Bus", len(message.Key), maxSessionID))
	}
	if message.Key != "" {
		encoded.SessionID = &message.Key
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.sent.Store(true)
	return s.sender.SendMessage(ctx, encoded, nil)
}

// ping ends with ctx, whatever the client does.
func (s *serviceBus) ping(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() { answer <- s.ask(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *serviceBus) close(ctx context.Context) error {
	return errors.Join(s.sender.Close(ctx), s.client.Close(ctx))
}
