package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestOrdered has the first event of one key fail some times. Those behind it wait, those of
// other keys do not, although only one is handled at a time.
func TestOrdered(t *testing.T) {
	t.Parallel()
	broker, stubborn := cluster(t), consumetest.NewStubborn()
	config := settings(t, broker.URL(), consumetest.Handler(stubborn.Handle))
	config.Process.Concurrency = 1
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()), consumetest.Events(12, 2))
	start(t, config)
	stubborn.Check(t)
}

// TestSlowHandler handles for long while a second consumer joins the group: the first shows signs of
// life all the time, the second waits for the partition, and nothing is handled twice.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), consumetest.NewRecord()
	finished := make(chan struct{})
	finish := sync.OnceFunc(func() { close(finished) })
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		done.Add(m)
		<-finished
		return nil
	}))
	config.SessionTimeout = 10 * time.Second
	sent := consumetest.Events(12, 4)
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()), sent)
	first := start(t, config)
	done.Await(t, 1)
	joins := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Observe: true, Count: -1})
	second := start(t, config)
	t.Cleanup(finish) // also when it fails: the consumer's end waits for its handlers
	await.Until(t, "the second consumer to join", func() bool { return joins.Hits() > 0 })
	signs := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: -1})
	await.Until(t, "three signs of life", func() bool { return signs.Hits() >= 3 })
	finish()
	done.Await(t, len(sent))
	first.Stop()
	second.Stop()
	if len(done.All()) != len(sent) || uncommitted(t, broker) != 0 {
		t.Errorf("%d deliveries of %d events; %d are uncommitted", len(done.All()), len(sent), uncommitted(t, broker))
	}
}

// TestRebalance has a second consumer join and the first leave in the middle. Every event is
// handled once, each key's in order.
func TestRebalance(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), consumetest.NewRecord()
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		<-time.After(time.Millisecond)
		done.Add(m)
		return nil
	}))
	sent := consumetest.Events(3000, 50)
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()), sent)
	first := start(t, config)
	done.Await(t, 500)
	second := start(t, config)
	done.Await(t, 1500)
	first.Stop()
	done.Await(t, len(sent))
	second.Stop()
	places := make(map[string]int)
	for _, m := range done.All() {
		var n int
		if _, err := fmt.Sscan(m.Headers["n"], &n); err != nil {
			t.Fatal(err)
		}
		if last, seen := places[m.Key]; seen && n <= last {
			t.Fatalf("key %s: %d after %d", m.Key, n, last)
		}
		places[m.Key] = n
	}
	if len(done.All()) != len(sent) || uncommitted(t, broker) != 0 {
		t.Errorf("%d deliveries of %d events; %d are uncommitted", len(done.All()), len(sent), uncommitted(t, broker))
	}
}

// TestStuckPartition has a key that fails, with more events behind it than are taken at once.
// Other partitions go on.
func TestStuckPartition(t *testing.T) {
	t.Parallel()
	broker, tried, done := cluster(t), consumetest.NewRecord(), consumetest.NewRecord()
	release := make(chan struct{})
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		if m.Key == "order/0" {
			tried.Add(m)
			select {
			case <-release:
			default:
				return errors.New("not yet")
			}
		}
		done.Add(m)
		return nil
	}))
	config.Process.Concurrency = 4
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, consumetest.Events(200, 1))
	start(t, config)
	tried.Await(t, 3)
	publishertest.Deliver(t, publisher, consumetest.Events(220, 11))
	done.Await(t, 20)
	close(release)
	done.Await(t, 420)
}
