package packfinderz_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// mailLicences mails every change of a licence once, until ctx ends.
func mailLicences(
	ctx context.Context, broker gcppubsub.Config, events *idempotency.Manager,
	mail func(context.Context, payloads.LicenseStatusChanged) error,
) error {
	letters, err := gcppubsub.New(broker)
	if err != nil {
		return err
	}
	defer func() { _ = letters.Close() }()
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		return err
	}
	err = set.Register(string(enums.LicenseStatusChanged), "mail", func(ctx context.Context, m outbox.Message) error {
		_, change, err := payloads.Open[payloads.LicenseStatusChanged](m.Payload)
		if err != nil {
			return outbox.Terminal(err) // no delivery can mend it: a dead letter
		}
		_, err = inbox.Handle(ctx, events, "mailer", m.ID, func(ctx context.Context) error { return mail(ctx, change) })
		if errors.Is(err, inbox.ErrNotMarked) {
			slog.WarnContext(ctx, "mailed, and not marked", "event_id", m.ID, "error", err)
			return nil // the mail is sent
		}
		return err
	})
	if err != nil {
		return err
	}
	mailer, err := consumer.New(consumer.Config{
		Broker: broker, Subscription: "pf-domain-events-mailer",
		Process: consume.Config{
			Handlers: set, Unknown: consume.IgnoreUnknown, // the other types of the topic are for others
			DeadLetters: letters, DeadLetterTopic: "pf-domain-events-mailer-dead",
		},
	})
	if err != nil {
		return err
	}
	return mailer.Run(ctx)
}

func TestMain(m *testing.M) { backendtest.Main(m) }

// The consumer of docs/worker.md has the effect of an event once, however often it is delivered, and leaves other types alone.
func TestConsumerOfYourOwn(t *testing.T) {
	t.Parallel()
	_, code, _ := strings.Cut(read(t, "docs/worker.md"), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if code == "" || !strings.Contains(read(t, "consumer_test.go"), code) {
		t.Errorf("the code of docs/worker.md is not this function:\n%s", code)
	}

	server, domain := pubsubtest.New(t), "pf-domain-events"
	server.CreateTopic(t, domain)
	server.CreateTopic(t, "pf-domain-events-mailer-dead")
	_, err := server.Server.GServer.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: "projects/" + pubsubtest.Project + "/subscriptions/pf-domain-events-mailer", Topic: pubsubtest.TopicPath(domain),
		EnableMessageOrdering: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := gcppubsub.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	events, err := idempotency.NewManager(redistest.New(t).Client(), idempotency.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// One key, so that they are handled in this order: a change, it again, a type of others, and another change.
	first, last := backendtest.Pending(t), backendtest.Pending(t)
	other := first
	other.ID, other.Type = uuid.New(), string(enums.MediaUploaded)
	messages := []outbox.Message{first, first, other, last}
	for i := range messages {
		messages[i].Topic, messages[i].Key = domain, "one"
	}
	if err := errors.Join(pubsubtest.Open(t, server.URL()).Publish(t.Context(), messages)...); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mailed []uuid.UUID
	err = mailLicences(ctx, config, events, func(_ context.Context, change payloads.LicenseStatusChanged) error {
		if mailed = append(mailed, change.LicenseID); change.LicenseID.String() == last.AggregateID {
			stop()
		}
		return nil
	})
	if err != nil || len(mailed) != 2 {
		t.Errorf("%d mails, want 2 (%v)", len(mailed), err)
	}
	for _, message := range server.Server.Messages() {
		if message.Topic == pubsubtest.TopicPath("pf-domain-events-mailer-dead") {
			t.Errorf("a dead letter: %v", message.Attributes)
		}
	}
}
