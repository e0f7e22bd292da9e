package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
)

const (
	// askTimeout bounds a question to the cluster.
	askTimeout = 5 * time.Second
	// askNextAfter is how long a broker may think before another is asked, up to maxAsked.
	askNextAfter = 500 * time.Millisecond
	maxAsked     = 3
)

// Ping asks a broker, any of them, for the cluster's brokers.
func (p *Publisher) Ping(ctx context.Context) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{} // none, rather than all
	if _, err := ask(ctx, p, with(request, (*kmsg.MetadataRequest).RequestWith)); err != nil {
		return unreached(fmt.Errorf("ping Kafka: %w", err))
	}
	return nil
}

// PingTopic checks that the topic exists, has a leader and may be written to. If messages to it timed out, it also
// asks the leaders of its partitions. With Create it creates the topic.
func (p *Publisher) PingTopic(ctx context.Context, topic string) error {
	if err := p.calls.Begin(); err != nil {
		return err
	}
	defer p.calls.End()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := checkName(topic); err != nil {
		return err
	}
	return p.examine(ctx, []string{topic}, kmsg.ACLOperationWrite, true)[topic]
}

// askLeaders pings every broker that leads a partition of a topic, because one may hang while others answer.
func (p *Publisher) askLeaders(ctx context.Context, t *kmsg.MetadataResponseTopic) error {
	leaders := make(map[int32]bool)
	for i := range t.Partitions {
		if t.Partitions[i].Leader >= 0 {
			leaders[t.Partitions[i].Leader] = true
		}
	}
	answers := make(chan error, len(leaders))
	for leader := range leaders {
		go func() {
			_, err := ask(ctx, p, func(ctx context.Context, client *kgo.Client) (kmsg.Response, error) {
				return client.Broker(int(leader)).Request(ctx, kmsg.NewPtrApiVersionsRequest())
			})
			if err != nil {
				err = fmt.Errorf("broker %d leads partitions of topic %s and does not answer: %w", leader, *t.Topic, err)
			}
			answers <- err
		}()
	}
	for range leaders {
		if err := <-answers; err != nil {
			return outbox.TopicUnavailable(err)
		}
	}
	return nil
}

// ask asks the cluster, but no longer than the context: the client ignores the context while it greets a broker
// that does not answer. One broker may hang while the others work, so after a while ask asks the next, too.
func ask[T any](ctx context.Context, p *Publisher, request func(context.Context, *kgo.Client) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, maxAsked)
	client := p.current()
	next := time.NewTimer(0)
	defer next.Stop()
	for asked := 0; ; {
		select {
		case <-next.C:
			go func() {
				value, err := request(ctx, client)
				results <- result{value, err}
			}()
			if asked++; asked < maxAsked {
				next.Reset(askNextAfter)
			}
		case r := <-results:
			if r.err != nil && ctx.Err() == nil && p.current() != client {
				return ask(ctx, p, request) // it was replaced meanwhile
			}
			return r.value, r.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// with returns a request that any broker may answer. Each broker gets its own copy: the client writes the broker's
// version into it.
func with[R, T any](request *R, send func(*R, context.Context, kmsg.Requestor) (T, error)) func(context.Context, *kgo.Client) (T, error) {
	return func(ctx context.Context, client *kgo.Client) (T, error) {
		own := *request
		return send(&own, ctx, client)
	}
}
