package gocloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
	"gocloud.dev/pubsub/batcher"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/internal/failure"
)

// sqsAttributes is how many attributes a message has at most in SQS.
const sqsAttributes = 10

// groupID matches what can be a message group, or nothing.
var groupID = regexp.MustCompile(`^[!-~]{0,128}$`)

// amazon is a topic of SNS or a queue of SQS.
type amazon struct {
	// together sends up to ten messages at once, which succeed or fail as one; alone sends one. Messages that
	// failed together are tried alone.
	together, alone *pubsub.Topic
	queue, fifo     bool
	// place is the queue's URL or the topic's ARN.
	place string
}

func openAmazon(ctx context.Context, u *url.URL) (*amazon, error) {
	a := &amazon{queue: u.Scheme == awssnssqs.SQSScheme, fifo: strings.HasSuffix(u.Host+u.Path, ".fifo"), place: path.Join(u.Host, u.Path)}
	if a.queue {
		a.place = "https://" + a.place
	} else {
		a.place = strings.TrimPrefix(a.place, "/")
	}
	var err error
	// The driver's hundred requests at once would leave each with one message.
	if a.together, err = openBatching(ctx, u, batcher.Options{MaxHandlers: 10}); err != nil {
		return nil, err
	}
	if a.alone, err = openBatching(ctx, u, batcher.Options{MaxBatchSize: 1}); err != nil {
		return nil, errors.Join(err, a.together.Shutdown(ctx))
	}
	return a, nil
}

func openBatching(ctx context.Context, u *url.URL, options batcher.Options) (*pubsub.Topic, error) {
	opener := &awssnssqs.URLOpener{TopicOptions: awssnssqs.TopicOptions{BatcherOptions: options}}
	return opener.OpenTopicURL(ctx, u)
}

func (a *amazon) publish(ctx context.Context, o *outgoing) error {
	if err := a.check(o.Message, o.attributes); err != nil {
		return outbox.Rejected(err)
	}
	err := a.together.Send(ctx, a.encode(o))
	if err == nil || ctx.Err() != nil || !failure.MayBeOne(classify(err)) {
		return err
	}
	return a.alone.Send(ctx, a.encode(o))
}

// ping asks for the queue or topic, once.
func (a *amazon) ping(ctx context.Context) error {
	var queues *sqs.Client
	var topics *sns.Client
	switch {
	case a.alone.As(&queues):
		_, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &a.place, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
		}, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
		return err
	case a.alone.As(&topics):
		_, err := topics.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &a.place}, func(o *sns.Options) { o.RetryMaxAttempts = 1 })
		return err
	}
	return nil
}

// check rejects what the service can never accept.
func (a *amazon) check(message *outbox.Message, attributes map[string]string) error {
	if len(message.Payload) == 0 {
		return errors.New("the payload is empty, which SNS and SQS do not take")
	}
	count := len(attributes)
	if !utf8.Valid(message.Payload) {
		count++ // the driver writes it in base64 and says so in an attribute
	}
	if a.queue && count > sqsAttributes {
		return fmt.Errorf("it has %d attributes, headers among them; SQS takes at most %d", count, sqsAttributes)
	}
	for name, value := range attributes {
		if name == "" || value == "" {
			return fmt.Errorf("header %q has no name or no value, and cannot be an attribute of SNS or SQS", name)
		}
	}
	if a.fifo && !groupID.MatchString(message.Key) {
		return fmt.Errorf("the key %.140q cannot be a message group: that has at most 128 characters, all printable ASCII without spaces", message.Key)
	}
	return nil
}

func (a *amazon) encode(o *outgoing) *pubsub.Message {
	encoded := o.encode()
	if !a.fifo {
		return encoded
	}
	message, send := o.Message, encoded.BeforeSend
	// The id guards against duplicates for five minutes. A message without a key is a group of its own.
	id := message.DuplicateID()
	group := cmp.Or(message.Key, id)
	encoded.BeforeSend = func(as func(any) bool) error {
		var notification *snstypes.PublishBatchRequestEntry
		var queued *sqstypes.SendMessageBatchRequestEntry
		switch {
		case as(&queued):
			queued.MessageGroupId, queued.MessageDeduplicationId = &group, &id
		case as(&notification):
			notification.MessageGroupId, notification.MessageDeduplicationId = &group, &id
		default:
			return errors.New("the driver does not say how to set the message group")
		}
		return send(as)
	}
	return encoded
}

func (a *amazon) close(ctx context.Context) error {
	return errors.Join(a.together.Shutdown(ctx), a.alone.Shutdown(ctx))
}
