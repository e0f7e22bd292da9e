package consumer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/patience"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/resource"
)

// mostBackoff is the service's limit for a retry policy.
const mostBackoff = 10 * time.Minute

// subscription is what a consumer has to know of its subscription.
type subscription struct {
	topic   string
	ordered bool
	retries bool // it has a retry policy
}

// find asks for the subscription, and creates it with Create. The right to consume does not include the right to
// ask: then the subscription is taken for an ordered one without a retry policy.
func (c *Consumer) find(ctx context.Context, client *pubsub.Client) (*subscription, error) {
	found, err := c.ask(ctx, client)
	switch status.Code(err) {
	case codes.OK:
	case codes.PermissionDenied:
		return &subscription{topic: c.config.Topic, ordered: !c.config.Broker.Unordered}, nil
	case codes.NotFound:
		if !c.config.Broker.Create {
			return nil, fmt.Errorf("subscription %s is not there; create it, or let it be created with ?create=true: %w", c.config.Subscription, err)
		}
		if found, err = c.create(ctx, client); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("ask for %s: %w", c.config.Subscription, err)
	}
	c.warn(found)
	topic := cmp.Or(c.config.Topic, strings.TrimPrefix(found.GetTopic(), resource.Topic(c.config.Broker.Project, "")))
	ordered := found.GetEnableMessageOrdering() && !c.config.Broker.Unordered
	return &subscription{topic: topic, ordered: ordered, retries: found.GetRetryPolicy() != nil}, nil
}

// ask asks the service for the subscription.
func (c *Consumer) ask(ctx context.Context, client *pubsub.Client) (found *pubsubpb.Subscription, err error) {
	err = patience.Call(ctx, func(ctx context.Context, option gax.CallOption) (err error) {
		found, err = client.SubscriptionAdminClient.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: c.config.Subscription}, option)
		return err
	})
	return found, err
}

// warn logs settings that do not suit this consumer.
func (c *Consumer) warn(found *pubsubpb.Subscription) {
	if !found.GetEnableMessageOrdering() && !c.config.Broker.Unordered {
		c.logger.Warn("the subscription does not keep the order of keys; it can only be made with ordering enabled")
	}
	policy := found.GetDeadLetterPolicy()
	if most := int(policy.GetMaxDeliveryAttempts()); policy != nil && c.config.Process.DeadLetters != nil && most <= c.config.Process.MaxDeliveries {
		c.logger.Warn("the subscription has dead letters of its own, and the service takes events there first, without a reason",
			"max_delivery_attempts", most, "max_deliveries", c.config.Process.MaxDeliveries)
	}
}

// create makes the subscription, and its topic.
func (c *Consumer) create(ctx context.Context, client *pubsub.Client) (*pubsubpb.Subscription, error) {
	topic := resource.Topic(c.config.Broker.Project, c.config.Topic)
	err := patience.Call(ctx, func(ctx context.Context, option gax.CallOption) error {
		_, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic}, option)
		return err
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return nil, fmt.Errorf("create %s: %w", topic, err)
	}
	retry := c.config.Process.Retry
	wanted := &pubsubpb.Subscription{
		Name: c.config.Subscription, Topic: topic, AckDeadlineSeconds: int32(c.config.AckDeadline / time.Second),
		EnableMessageOrdering: !c.config.Broker.Unordered, EnableExactlyOnceDelivery: c.config.ExactlyOnce,
		RetryPolicy: &pubsubpb.RetryPolicy{
			MinimumBackoff: durationpb.New(min(retry.Base, mostBackoff)), MaximumBackoff: durationpb.New(min(retry.Max, mostBackoff)),
		},
	}
	err = patience.Call(ctx, func(ctx context.Context, option gax.CallOption) error {
		_, err := client.SubscriptionAdminClient.CreateSubscription(ctx, wanted, option)
		return err
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return nil, fmt.Errorf("create %s: %w", c.config.Subscription, err)
	}
	return wanted, nil
}
