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
	"github.com/packfinderz/outbox/brokers/gcppubsub/internal/resource"
)

const (
	pingTimeout       = 5 * time.Second
	publishPermission = "pubsub.topics.publish"
)

// Ping is nil if the service answers and takes these credentials; after a topic has denied
// them, only once they may publish there.
func (p *Publisher) Ping(ctx context.Context) error {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.closed {
		return outbox.Unavailable(errClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	denied := p.denied.Load()
	if denied == nil {
		return p.pingTopic(ctx, *p.asked.Load(), false)
	}
	answer, err := p.client.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{
		Resource: *denied, Permissions: []string{publishPermission},
	})
	switch {
	case status.Code(err) == codes.Unimplemented:
		// An emulator, which has no permissions to ask for.
		err = p.pingTopic(ctx, *denied, true)
	case err != nil:
		err = outbox.Unavailable(fmt.Errorf("ask for the permissions on %s: %w", *denied, err))
	case len(answer.GetPermissions()) == 0:
		err = outbox.Unavailable(fmt.Errorf("the credentials have no permission %s on %s", publishPermission, *denied))
	}
	if err == nil {
		p.denied.CompareAndSwap(denied, nil)
	}
	return err
}

// pingTopic asks for a topic. The permission to publish does not include this question, so
// that its denial tells only that the service is there and knows us.
func (p *Publisher) pingTopic(ctx context.Context, topic string, strict bool) error {
	_, err := p.client.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: topic})
	switch code := status.Code(err); {
	case code == codes.OK, code == codes.NotFound:
		return nil
	case code == codes.PermissionDenied && !strict:
		return nil
	}
	return outbox.Unavailable(fmt.Errorf("ask for %s: %w", topic, err))
}

// MissingTopics are those of the topics that are not there. Events for them would be tried, and
// counted, in vain. A topic that these credentials may not ask for is taken to be there: the
// permission to publish does not include the question.
func (p *Publisher) MissingTopics(ctx context.Context, topics ...string) (missing []string, err error) {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.closed {
		return nil, outbox.Unavailable(errClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	for _, topic := range topics {
		_, err := p.client.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: resource.Topic(p.config.Project, topic)})
		switch status.Code(err) {
		case codes.OK, codes.PermissionDenied:
		case codes.NotFound:
			missing = append(missing, topic)
		default:
			return nil, outbox.Unavailable(fmt.Errorf("ask for %s: %w", topic, err))
		}
	}
	return missing, nil
}
