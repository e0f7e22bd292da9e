package kafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka/internal/topic"
)

// askTimeout bounds a question to the cluster.
const askTimeout = 5 * time.Second

// CheckTopics asks the cluster for topics, and makes those that are not there with Create, before
// there is anything to publish. It is an error if messages could not go to all of them.
func (p *Publisher) CheckTopics(ctx context.Context, topics ...string) error {
	if !p.enter() {
		return outbox.Unavailable(errClosed)
	}
	defer p.running.Done()
	bad := p.checkTopics(ctx, slices.Values(topics))
	errs := make([]error, len(topics))
	for i, topic := range topics {
		errs[i] = bad[topic]
	}
	return errors.Join(errs...)
}

// checkTopics gives the topics that messages cannot go to, and why. A topic that was not used
// before is asked for: the client itself would wait for it to appear.
func (p *Publisher) checkTopics(ctx context.Context, topics iter.Seq[string]) map[string]error {
	bad := make(map[string]error)
	var unknown []string
	p.mu.Lock()
	seen := make(map[string]bool)
	for topic := range topics {
		if p.known[topic] || seen[topic] {
			continue
		}
		seen[topic] = true
		if err := checkName(topic); err != nil {
			bad[topic] = err
			continue
		}
		unknown = append(unknown, topic)
	}
	p.mu.Unlock()
	if len(unknown) == 0 {
		return bad
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	missing := p.ask(ctx, unknown, bad)
	if len(missing) > 0 && p.config.Create {
		p.create(ctx, missing, bad)
	}
	return bad
}

func checkName(name string) error {
	if name == "" {
		return errors.New("the event has no topic; set one with --topic-default")
	}
	if err := topic.Check(name); err != nil {
		return outbox.Rejected(err)
	}
	return nil
}

// ask asks the cluster for topics, and gives those that are not there.
func (p *Publisher) ask(ctx context.Context, topics []string, bad map[string]error) (missing []string) {
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, t)
	}
	response, err := within(ctx, func(ctx context.Context) (*kmsg.MetadataResponse, error) {
		return request.RequestWith(ctx, p.client)
	})
	if err != nil {
		if ctx.Err() != nil {
			err = unreachableError{err}
		}
		for _, topic := range topics {
			bad[topic] = p.classify(err, topic)
		}
		return nil
	}
	for _, t := range response.Topics {
		if t.Topic == nil {
			continue
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case err == nil, errors.Is(err, kerr.LeaderNotAvailable):
			p.setKnown(*t.Topic)
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			missing = append(missing, *t.Topic)
			bad[*t.Topic] = p.classify(err, *t.Topic)
		default:
			bad[*t.Topic] = p.classify(err, *t.Topic)
		}
	}
	return missing
}

// create makes topics, and takes them off the bad ones.
func (p *Publisher) create(ctx context.Context, topics []string, bad map[string]error) {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = int32(askTimeout.Milliseconds())
	for _, topic := range topics {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic = topic
		t.NumPartitions, t.ReplicationFactor = int32(p.config.Partitions), int16(p.config.Replication)
		request.Topics = append(request.Topics, t)
	}
	response, err := within(ctx, func(ctx context.Context) (*kmsg.CreateTopicsResponse, error) {
		return request.RequestWith(ctx, p.client)
	})
	if err != nil {
		for _, topic := range topics {
			bad[topic] = p.classify(fmt.Errorf("create the topic: %w", err), topic)
		}
		return
	}
	for _, t := range response.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			bad[t.Topic] = p.classify(fmt.Errorf("create the topic: %w", err), t.Topic)
			continue
		}
		delete(bad, t.Topic)
		p.setKnown(t.Topic)
	}
}

// within asks the cluster, but no longer than the context: while the client greets a broker
// that does not answer, it does not look at it.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := ask(ctx)
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (p *Publisher) setKnown(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[topic] = true
}

// forget is for a topic that is gone: it is asked for again.
func (p *Publisher) forget(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, topic)
	delete(p.warm, topic)
}

func (p *Publisher) isWarm(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.warm[topic]
}

func (p *Publisher) warmed(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warm[topic] {
		p.warm[topic] = true
	}
}
