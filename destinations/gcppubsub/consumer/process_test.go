package consumer_test

// A consumer that is a process of its own, so that it can be killed: the test program in another
// role.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const consumerEnv = "OUTBOX_PUBSUB_TEST_CONSUMER"

// killedAt is the event at which the consumer is killed. It does not come to the end of it.
const killedAt = 20

// consumeIfAsked makes this process a consumer of the server that the environment names. It
// writes the id of each event that it handles, and ends with its parent.
func consumeIfAsked() {
	url := os.Getenv(consumerEnv)
	if url == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
		cancel()
	}()
	if err := consumeFrom(ctx, url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func consumeFrom(ctx context.Context, url string) error {
	config, err := gcppubsub.ParseURL(url)
	if err != nil {
		return err
	}
	var handled atomic.Int64
	consumer, err := consumer.New(consumer.Config{
		Broker: config, Subscription: subscription, AckDeadline: 10e9,
		Process: consume.Config{Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
			if _, err := fmt.Println(m.ID); err != nil {
				return err
			}
			if handled.Add(1) >= killedAt {
				<-ctx.Done()
			}
			return ctx.Err()
		})},
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// TestKilled kills a consumer in the middle: what it had not acknowledged comes again.
func TestKilled(t *testing.T) {
	t.Parallel()
	const events = 200
	broker := subscribed(t)
	publishAll(t, broker, publishertest.Messages(events))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), consumerEnv+"="+broker.URL())
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close() }()
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	handled := make(map[string]bool)
	lines := bufio.NewReader(output)
	for err == nil {
		var line string
		if line, err = lines.ReadString('\n'); err == nil {
			handled[strings.TrimSpace(line)] = true
		}
		if len(handled) == killedAt {
			_ = cmd.Process.Kill() // and read on: what it wrote before
		}
	}
	_ = cmd.Wait()
	before := acked(broker, publishertest.Topic)
	if before == events || len(handled) <= before {
		t.Fatalf("%d events were handled and %d acknowledged: it was killed too late", len(handled), before)
	}
	again := consumetest.NewRecord()
	run(t, consumerConfig(t, broker.URL(), consumetest.Handler(again.Handle)))
	await.Until(t, "every event to be acknowledged", func() bool { return acked(broker, publishertest.Topic) == events })
	// Acknowledgements may still have been on their way when it was killed.
	if times := consumetest.Counts(again.All()); len(times) > events-before {
		t.Errorf("%d events came again, and only %d were not acknowledged", len(times), events-before)
	}
	for id := range consumetest.Counts(again.All()) {
		handled[id.String()] = true
	}
	if len(handled) != events {
		t.Errorf("%d of %d events were handled", len(handled), events)
	}
}
