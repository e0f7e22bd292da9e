package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/consumer"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestOutlivesCluster takes the cluster away in the middle, for longer than a session,
// and brings it back.
func TestOutlivesCluster(t *testing.T) {
	t.Parallel()
	broker, gate := cluster(t), consumetest.NewGate(300)
	sent := consumetest.Events(1000, 50)
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()), sent)
	logged := consumetest.NewLog()
	config := settings(t, broker.URL(), consumetest.Handler(gate.Handle))
	config.SessionTimeout = time.Second
	config.Process.Logger = logged.Logger()
	consumer := start(t, config)
	<-gate.Reached
	broker.Stop(t)
	gate.Open() // what is in hand is handled, and cannot be committed
	logged.Await(t, "cannot be reached; waiting")
	broker.Start(t)
	gate.AwaitThat(t, func(list []outbox.Message) bool { return len(consumetest.Counts(list)) == len(sent) })
	// Until it is in the group again, and has seen them again.
	await.Until(t, "everything to be committed", func() bool { return uncommitted(t, broker) == 0 })
	consumer.Stop()
	if text := logged.String(); strings.Count(text, "cannot be reached; waiting") != 1 || !strings.Contains(text, "answers again") || uncommitted(t, broker) != 0 {
		t.Errorf("%d events are uncommitted; logged:\n%s", uncommitted(t, broker), text)
	}
}

// TestClusterAwayAtFirst starts a consumer before its cluster and its topic. It waits, says so
// once and keeps the password to itself.
func TestClusterAwayAtFirst(t *testing.T) {
	t.Parallel()
	const password = "hunter2-secret"
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", password))
	broker.Stop(t)
	done, logged := consumetest.NewRecord(), consumetest.NewLog()
	url := "kafka://app:" + password + "@" + broker.Addresses()
	config := settings(t, url, consumetest.Handler(done.Handle))
	config.Topics, config.SessionTimeout = []string{"invoices"}, 0
	config.Process.Logger = logged.Logger()
	consumer := start(t, config)
	logged.Await(t, "waiting")
	broker.Start(t)
	sent := consumetest.Events(5, 5)
	for i := range sent {
		sent[i].Topic = "invoices"
	}
	publishertest.Deliver(t, kafkatest.Open(t, url+"?create=true"), sent)
	done.Await(t, 5)
	consumer.Stop()
	if text := logged.String(); strings.Contains(text, password) || strings.Count(text, "waiting") != 1 || !strings.Contains(text, "topics are there") {
		t.Errorf("logged:\n%s", text)
	}
}

// TestGap has the first event of a partition not end while those behind it are handled. Nothing
// is committed: the next consumer begins with it.
func TestGap(t *testing.T) {
	t.Parallel()
	broker, first, second := cluster(t), consumetest.NewRecord(), consumetest.NewRecord()
	sent := consumetest.Events(10, 10)
	for i := range sent {
		sent[i].Topic = "single"
	}
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()+"?create=true&partitions=1"), sent)
	config := settings(t, broker.URL(), consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		if m.ID == sent[0].ID {
			<-ctx.Done()
			return ctx.Err()
		}
		first.Add(m)
		return nil
	}))
	config.Topics, config.Process.Grace = []string{"single"}, 50*time.Millisecond
	consumer := start(t, config)
	first.Await(t, len(sent)-1)
	consumer.Stop()
	config.Process.Handlers = consumetest.Handler(second.Handle)
	start(t, config)
	if list := second.Await(t, len(sent)); consumetest.Counts(list)[sent[0].ID] != 1 {
		t.Errorf("the event that was not handled did not come again: %v", consumetest.Counts(list))
	}
}

// TestConfig refuses configurations that cannot work.
func TestConfig(t *testing.T) {
	t.Parallel()
	good := settings(t, "kafka://localhost", consumetest.Handler(func(context.Context, outbox.Message) error { return nil }))
	for words, spoil := range map[string]func(*consumer.Config){
		"Group is missing":    func(c *consumer.Config) { c.Group = "" },
		"Topics is missing":   func(c *consumer.Config) { c.Topics = nil },
		"cannot be one of":    func(c *consumer.Config) { c.Topics = []string{"a b"} },
		"Concurrency is -1":   func(c *consumer.Config) { c.Process.Concurrency = -1 },
		"Handlers is missing": func(c *consumer.Config) { c.Process.Handlers = nil },
		"no address is named": func(c *consumer.Config) { c.Broker.Addresses = nil },
		"no compression":      func(c *consumer.Config) { c.Broker.Compression = "rar" },
		"there is no SASL":    func(c *consumer.Config) { c.Broker.SASL, c.Broker.Username, c.Broker.Password = "x", "y", "z" },
	} {
		config := good
		spoil(&config)
		if _, err := consumer.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
}

// TestCreates makes the topic that it reads.
func TestCreates(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), consumetest.NewRecord()
	config := settings(t, broker.URL()+"?create=true", consumetest.Handler(done.Handle))
	config.Topics = []string{"invoices"}
	start(t, config)
	sent := consumetest.Events(1, 1)
	sent[0].Topic = "invoices"
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()+"?create=true"), sent)
	done.Await(t, 1)
}

// TestReadsWithoutRightToWrite has a user who may read the topic and use the group, and no more.
func TestReadsWithoutRightToWrite(t *testing.T) {
	t.Parallel()
	may := func(kind kmsg.ACLResourceType, name string) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true}
	}
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "s3cret"),
		kfake.User("PLAIN", "reader", "s3cret", may(kmsg.ACLResourceTypeTopic, publishertest.Topic), may(kmsg.ACLResourceTypeGroup, group)))
	done := consumetest.NewRecord()
	config := settings(t, "kafka://reader:s3cret@"+broker.Addresses(), consumetest.Handler(done.Handle))
	config.SessionTimeout = 0 // the cluster allows no short one
	start(t, config)
	publishertest.Deliver(t, kafkatest.Open(t, "kafka://root:s3cret@"+broker.Addresses()), consumetest.Events(3, 3))
	done.Await(t, 3)
}
