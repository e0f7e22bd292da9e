package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// briefly asks with little time: nothing has to happen in it.
func briefly(t testing.TB, ask func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	return publishertest.Ends(t, func() error { return ask(ctx) })
}

func TestPingTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	ask := func(ctx context.Context) error { return publisher.PingTopic(ctx, publishertest.Topic) }
	if err := ask(t.Context()); err != nil {
		t.Error(err)
	}
	publishertest.Away(t, publisher.PingTopic(t.Context(), "payments"), true, true, "payments", "?create=true")
	publishertest.Fails(t, publisher.PingTopic(t.Context(), "a b"), outbox.ClassTerminal)
	if err := kafkatest.Open(t, broker.URL()+"?create=true").PingTopic(t.Context(), "payments"); err != nil {
		t.Errorf("a topic that is made: %v", err)
	}
	one := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: publishertest.Topic, Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
	if err := ask(t.Context()); err != nil {
		t.Errorf("only one of its partitions has no leader: %v", err)
	}
	one.Remove()
	none := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: publishertest.Topic, Err: kerr.LeaderNotAvailable, Count: -1})
	publishertest.Away(t, ask(t.Context()), true, false, "LEADER_NOT_AVAILABLE")
	publishertest.Answers(t, publisher)
	none.Remove()
	for _, proxy := range broker.Proxies() {
		proxy.Swallow()
	}
	publishertest.Away(t, briefly(t, ask), false, false)
	publishertest.Away(t, briefly(t, publisher.Ping), false, false)
	for _, proxy := range broker.Proxies() {
		proxy.Resume()
	}
	broker.Stop(t)
	publishertest.Away(t, ask(t.Context()), false, false)
	broker.Start(t)
	await.Until(t, "the topic to answer", func() bool { return ask(t.Context()) == nil })
	if err := publisher.Close(); err != nil {
		t.Fatal(err)
	}
	publishertest.Away(t, ask(t.Context()), false, false, "closed")
}

// TestCreateRefused has a cluster that does not make the topic.
func TestCreateRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err     *kerr.Error
		setting bool
	}{{kerr.PolicyViolation, true}, {kerr.ClusterAuthorizationFailed, true}, {kerr.ThrottlingQuotaExceeded, false}} {
		t.Run(test.err.Message, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.New(t)
			publisher := kafkatest.Open(t, broker.URL()+"?create=true")
			fault := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "payments", Err: test.err, Count: -1})
			messages := publishertest.Messages(2)
			messages[0].Topic = "payments"
			errs := publishertest.Publish(t, publisher, messages)
			publishertest.Away(t, errs[0], true, test.setting, test.err.Message)
			if errs[1] != nil {
				t.Error(errs[1])
			}
			fault.Remove()
			publishertest.Deliver(t, publisher, messages)
		})
	}
}

// spread makes messages that go to every partition.
func spread() []outbox.Message {
	messages := publishertest.Messages(60)
	for i := range messages {
		messages[i].Key = fmt.Sprintf("spread/%d", i)
	}
	return messages
}

// delivered counts the messages that were acknowledged.
func delivered(errs []error) (n int) {
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n
}

// TestOneBroker takes one broker of three away: the cluster is there, and only the partitions that
// it leads take nothing.
func TestOneBroker(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, spread())
	broker.Leader(0).Cut()
	errs := publishertest.Publish(t, publisher, spread())
	for _, err := range errs {
		if err != nil && !errors.Is(err, outbox.ErrNotAttempted) {
			publishertest.Away(t, err, true, false)
		}
	}
	if n := delivered(errs); n == 0 || n == len(errs) {
		t.Errorf("%d of %d messages were delivered", n, len(errs))
	}
	broker.Leader(0).Restore(t)
	publishertest.Answers(t, publisher)
	publishertest.Deliver(t, publisher, spread())
}

// call is a publisher of which it is known whether a call is over.
type call struct {
	outbox.Publisher
	over atomic.Bool
}

func (c *call) Publish(ctx context.Context, messages []outbox.Message) []error {
	defer c.over.Store(true)
	return c.Publisher.Publish(ctx, messages)
}

// TestOneBrokerHangs has one broker of three that says nothing more. What goes to it is not the
// messages' fault, whatever becomes of the others.
func TestOneBrokerHangs(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, spread())
	ask := func(ctx context.Context) error { return publisher.PingTopic(ctx, publishertest.Topic) }
	broker.Leader(0).Swallow()
	// A client may keep to the one that hangs for all its questions; another one is made then.
	for n := 0; n == 0; {
		began := time.Now()
		call := &call{Publisher: publisher}
		errs := publishertest.Abandon(t, call, spread(), func() {
			await.Until(t, "an answer", func() bool { return publisher.Heard(began) || call.over.Load() })
		})
		n = delivered(errs)
		for _, err := range errs {
			if err != nil && n > 0 {
				publishertest.Away(t, err, true, false, "no acknowledgement")
			}
		}
		if n == len(errs) {
			t.Fatal("all were delivered")
		}
	}
	publishertest.Answers(t, publisher)
	var err error
	await.Until(t, "the others to tell of the topic", func() bool {
		err = ask(t.Context())
		return err == nil || strings.Contains(err.Error(), "leads partitions")
	})
	publishertest.Away(t, err, true, false, "does not answer")
	broker.Leader(0).Resume()
	await.Until(t, "the topic to answer", func() bool { return ask(t.Context()) == nil })
	publishertest.Deliver(t, publisher, spread())
}

// waiting is a context that ends when somebody waits for its end.
type waiting struct {
	context.Context

	once sync.Once
	over chan struct{}
}

// Done is closed at once.
func (w *waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.over) })
	return w.over
}

// Err says whether somebody has waited.
func (w *waiting) Err() error {
	select {
	case <-w.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestNoTurn has the time end while another batch is under way: nothing was sent.
func TestNoTurn(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(8))
	came, release := hold(t, broker)
	results := make(chan []error)
	go func() { results <- publisher.Publish(context.WithoutCancel(t.Context()), publishertest.Messages(4)) }()
	<-came
	ctx := &waiting{Context: t.Context(), over: make(chan struct{})}
	for _, err := range publisher.Publish(ctx, publishertest.Messages(3)) {
		if !errors.Is(err, outbox.ErrNotAttempted) {
			t.Errorf("it cannot have been sent: %v", err)
		}
	}
	release()
	for _, err := range <-results {
		if err != nil {
			t.Error(err)
		}
	}
}
