package gcppubsub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/resource"
)

const (
	pingTimeout       = 5 * time.Second
	publishPermission = "pubsub.topics.publish"
)

// Ping checks that the service answers and accepts these credentials. It asks for the topic that was last published
// to; "missing" or "not allowed to ask" are answers, too.
func (p *Publisher) Ping(ctx context.Context) error {
	_, err := p.ask(ctx, *p.asked.Load())
	return err
}

// PingTopic checks that the topic exists and these credentials may publish to it, as far as they may ask: the right
// to publish does not include the right to ask.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	name := resource.Topic(p.config.Project, topic)
	missing, err := p.ask(ctx, name)
	switch {
	case err != nil:
		return err
	case missing != nil && p.config.Create:
		return nil // it is made for the first message
	case missing != nil:
		return classify(name, missing)
	}
	return p.pingPermission(ctx, name)
}

// pingPermission checks whether we may publish. If that cannot be asked, as of an emulator, it succeeds: publishing
// will tell.
func (p *Publisher) pingPermission(ctx context.Context, topic string) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	answer, err := p.client.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{
		Resource: topic, Permissions: []string{publishPermission},
	})
	// The service did not answer, or not us.
	silences := []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unauthenticated}
	switch {
	case err == nil && len(answer.GetPermissions()) == 0:
		return outbox.TopicMissing(fmt.Errorf("these credentials lack %s on %s; grant them roles/pubsub.publisher", publishPermission, topic))
	case slices.Contains(silences, status.Code(err)):
		return classifyCall(fmt.Errorf("ask for the permissions on %s: %w", topic, err))
	}
	return nil
}

// ask asks for a topic. missing is the service's answer that there is none.
func (p *Publisher) ask(ctx context.Context, topic string) (missing, err error) {
	if err := p.calls.Begin(); err != nil {
		return nil, err
	}
	defer p.calls.End()
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err = p.client.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: topic})
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied:
		return nil, nil
	case codes.NotFound:
		return err, nil
	}
	return nil, classifyCall(fmt.Errorf("ask for %s: %w", topic, err))
}

// MissingTopics returns the topics that do not exist: events for them would wait. A topic that these
// credentials may not ask for counts as existing: the permission to publish does not include asking.
func (p *Publisher) MissingTopics(ctx context.Context, topics ...string) (missing []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	for _, topic := range topics {
		none, err := p.ask(ctx, resource.Topic(p.config.Project, topic))
		if err != nil {
			return nil, err
		}
		if none != nil {
			missing = append(missing, topic)
		}
	}
	return missing, nil
}
