package gcppubsub

import (
	"context"
	"fmt"
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

// Ping is nil if the service answers and takes these credentials. It asks for the topic that was
// last published to; that it is missing, or that we may not ask, is an answer too.
func (p *Publisher) Ping(ctx context.Context) error {
	_, err := p.ask(ctx, *p.asked.Load())
	return err
}

// PingTopic is nil if the topic is there and these credentials may publish to it, as far as they
// may ask: the permission to publish does not include the questions.
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

// pingPermission asks whether we may publish. Where that cannot be asked, as of an emulator, the
// answer is yes: publishing will tell.
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
	switch {
	case err == nil && len(answer.GetPermissions()) == 0:
		return outbox.TopicMissing(fmt.Errorf("these credentials lack %s on %s; grant them roles/pubsub.publisher", publishPermission, topic))
	case isOutage(err):
		return classifyCall(fmt.Errorf("ask for the permissions on %s: %w", topic, err))
	}
	return nil
}

// ask asks for a topic. Missing is the service's word that there is none.
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

// isOutage reports whether the service did not answer, or not us.
func isOutage(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unauthenticated:
		return true
	}
	return false
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
