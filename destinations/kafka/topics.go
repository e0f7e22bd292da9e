package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/internal/topic"
)

// CheckTopics reports which topics cannot be published to, before there is anything to publish. With Create it
// creates missing ones.
func (p *Publisher) CheckTopics(ctx context.Context, topics ...string) error {
	return p.askTopics(ctx, topics, kmsg.ACLOperationWrite)
}

// FindTopics is CheckTopics for readers: it needs no right to write.
func (p *Publisher) FindTopics(ctx context.Context, topics ...string) error {
	return p.askTopics(ctx, topics, kmsg.ACLOperationUnknown)
}

func (p *Publisher) askTopics(ctx context.Context, topics []string, right kmsg.ACLOperation) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	bad := p.checkTopics(ctx, topics, right)
	errs := make([]error, len(topics))
	for i, topic := range topics {
		errs[i] = bad[topic]
	}
	return errors.Join(errs...)
}

// checkTopics returns the topics that cannot be published to, and why. It asks for a topic that was not used
// before: the client itself would wait for it to appear.
func (p *Publisher) checkTopics(ctx context.Context, topics []string, right kmsg.ACLOperation) map[string]error {
	bad := make(map[string]error)
	var unknown []string
	seen := make(map[string]bool)
	for _, topic := range topics {
		if _, known := p.known.Load(topic); known || seen[topic] {
			continue
		}
		seen[topic] = true
		if err := checkName(topic); err != nil {
			bad[topic] = err
			continue
		}
		unknown = append(unknown, topic)
	}
	if len(unknown) == 0 {
		return bad
	}
	// Half of the time that is left: what nobody answers must be known while there is a context.
	asking, cancel := context.WithTimeout(ctx, askFor(ctx))
	defer cancel()
	for topic, err := range p.examine(asking, unknown, right, false) {
		if ctx.Err() != nil && outbox.Classify(err) == outbox.ClassUnavailable {
			err = outbox.ErrNotAttempted
		}
		bad[topic] = err
	}
	return bad
}

func askFor(ctx context.Context) time.Duration {
	if deadline, bounded := ctx.Deadline(); bounded {
		return min(askTimeout, time.Until(deadline)/2)
	}
	return askTimeout
}

func checkName(name string) error {
	if name == "" {
		return outbox.ErrNoTopic
	}
	if err := topic.Check(name); err != nil {
		return outbox.Rejected(err)
	}
	return nil
}

// examine asks the cluster for topics, creates missing ones with Create, and returns those that cannot be used. The
// user needs the right on them, unless it is unknown. With leaders, a topic needs a leader; at a publish the client
// waits for one.
func (p *Publisher) examine(ctx context.Context, topics []string, right kmsg.ACLOperation, leaders bool) (bad map[string]error) {
	bad = make(map[string]error)
	request := kmsg.NewPtrMetadataRequest()
	request.IncludeTopicAuthorizedOperations = true
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, t)
	}
	response, err := ask(ctx, p, with(request, (*kmsg.MetadataRequest).RequestWith))
	if err != nil {
		for _, topic := range topics {
			bad[topic] = unreached(fmt.Errorf("ask Kafka for topic %s: %w", topic, err))
		}
		return bad
	}
	var missing []string
	for i := range response.Topics {
		t := &response.Topics[i]
		if t.Topic == nil {
			continue
		}
		err := stateOf(t, right)
		if _, silent := p.silent.Load(*t.Topic); err == nil && leaders && silent {
			if unled := p.askLeaders(ctx, t); unled != nil {
				bad[*t.Topic] = unled
				continue
			}
		}
		switch {
		case err == nil, errors.Is(err, kerr.LeaderNotAvailable) && !leaders:
			p.known.Store(*t.Topic, nil)
		case errors.Is(err, kerr.UnknownTopicOrPartition) && p.config.Create:
			missing = append(missing, *t.Topic)
		default:
			p.forget(*t.Topic)
			bad[*t.Topic] = classify(err, *t.Topic)
		}
	}
	if len(missing) > 0 {
		p.create(ctx, missing, bad)
	}
	return bad
}

// stateOf returns why a topic cannot be published to; nil if it can, to one partition at least.
func stateOf(t *kmsg.MetadataResponseTopic, right kmsg.ACLOperation) error {
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return err
	}
	// A cluster that does not tell the rights returns a negative number; a user who may ask for a topic has some
	// right on it.
	if rights := t.AuthorizedOperations; rights > 0 && right != kmsg.ACLOperationUnknown && rights&(1<<right) == 0 {
		return kerr.TopicAuthorizationFailed
	}
	for i := range t.Partitions {
		if t.Partitions[i].ErrorCode == 0 && t.Partitions[i].Leader >= 0 {
			return nil
		}
	}
	return kerr.LeaderNotAvailable
}

// create makes topics, and notes those that cannot be made.
func (p *Publisher) create(ctx context.Context, topics []string, bad map[string]error) {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = int32(askTimeout.Milliseconds())
	for _, topic := range topics {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic = topic
		t.NumPartitions, t.ReplicationFactor = int32(p.config.Partitions), int16(p.config.Replication)
		request.Topics = append(request.Topics, t)
	}
	response, err := ask(ctx, p, with(request, (*kmsg.CreateTopicsRequest).RequestWith))
	if err != nil {
		for _, topic := range topics {
			bad[topic] = unreached(fmt.Errorf("create topic %s: %w", topic, err))
		}
		return
	}
	for _, t := range response.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		told := fmt.Errorf("create topic %s: %w", t.Topic, err)
		switch {
		case err == nil, errors.Is(err, kerr.TopicAlreadyExists):
			p.known.Store(t.Topic, nil)
		case errors.Is(err, kerr.InvalidTopicException):
			bad[t.Topic] = outbox.Rejected(told)
		case kerr.IsRetriable(err):
			bad[t.Topic] = outbox.TopicUnavailable(told)
		default: // no right to, a number of partitions or replicas that cannot be, a policy
			bad[t.Topic] = outbox.TopicMissing(told)
		}
	}
}

// forget is for a topic that is gone: it is asked for again.
func (p *Publisher) forget(topic string) {
	p.known.Delete(topic)
	p.warm.Delete(topic)
}
