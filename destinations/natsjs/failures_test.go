package natsjs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// stream makes a stream.
func stream(t testing.TB, broker *natstest.Broker, config jetstream.StreamConfig) {
	t.Helper()
	js, err := jetstream.New(broker.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{})
	stream(t, broker, jetstream.StreamConfig{Name: "SMALL", Subjects: []string{"small"}, MaxMsgSize: 2000})
	publisher := open(t, broker.URL())
	messages := publishertest.Messages(3)
	for i := range messages {
		messages[i].Topic = "small"
	}
	messages[0].Payload = make([]byte, 1<<20+1) // the server's limit
	messages[1].Payload = make([]byte, 2001)    // the stream's
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Fails(t, errs[0], outbox.ClassTerminal, "maximum payload")
	publishertest.Fails(t, errs[1], outbox.ClassTerminal, "message size exceeds maximum")
	if outbox.ReasonOf(errs[1]) != outbox.ReasonRejected {
		t.Errorf("the reason is %q", outbox.ReasonOf(errs[1]))
	}
	if errs[2] != nil {
		t.Error(errs[2])
	}
}

func TestUnknownStream(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publisher := open(t, broker.URL())
	messages := publishertest.Messages(3)
	messages[0].Topic = "nobody.has.this"
	messages[1].Topic = ""
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Away(t, errs[0], true, true, "nobody.has.this", "?create=true")
	publishertest.Fails(t, errs[1], outbox.ClassUnavailable, "--topic-default")
	if errs[2] != nil {
		t.Error(errs[2])
	}
	other := open(t, broker.URL()+"?stream=OTHER")
	publishertest.Away(t, publishertest.Publish(t, other, publishertest.Messages(1))[0], true, true, "expected stream does not match")
	publishertest.Away(t, other.PingTopic(t.Context(), publishertest.Topic), true, true, `"OTHER"`)
}

func TestCreate(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{})
	messages := publishertest.Messages(40)
	for i := range messages {
		messages[i].Topic = fmt.Sprintf("shop.topic%d", i%4)
	}
	publishertest.Deliver(t, open(t, broker.URL()+"?create=true"), messages)
	publishertest.Deliver(t, open(t, broker.URL()+"?create=true&stream=ALL&subject-prefix=all."), messages)
	js, err := jetstream.New(broker.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, count := range map[string]uint64{"shop_topic0": 10, "shop_topic3": 10, "ALL": 40} {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().State.Msgs; got != count {
			t.Errorf("stream %s has %d messages, want %d", name, got, count)
		}
	}
}

func TestNoJetStream(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{NoJetStream: true})
	publisher := open(t, broker.URL())
	publishertest.Away(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], false, false, "JetStream")
	publishertest.Away(t, publisher.Ping(t.Context()), false, false, "JetStream")
	publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), false, false, "JetStream")
}

const users = `authorization { users = [
	{user: relay, password: "s3cret/@word"},
	{user: few, password: few, permissions: {publish: ["orders"], subscribe: ["_INBOX.>"]}},
	{user: deaf, password: deaf, permissions: {subscribe: ["nothing"]}},
] }`

func TestAuthorization(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{Config: users, User: "relay", Password: "s3cret/@word"})
	stream(t, broker, jetstream.StreamConfig{Name: natstest.Stream, Subjects: []string{publishertest.Topic, "secret"}})
	as := func(user string) string { return "nats://" + user + "@" + broker.Address() }

	t.Run("allowed", func(t *testing.T) {
		t.Parallel()
		publishertest.Deliver(t, open(t, broker.URL()), publishertest.Messages(2))
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		const wrong = "wr0ngpassw0rd"
		publisher := open(t, as("relay:"+wrong))
		for _, err := range append(publishertest.Publish(t, publisher, publishertest.Messages(2)), publisher.Ping(t.Context())) {
			publishertest.Away(t, err, false, true)
			if !strings.Contains(strings.ToLower(err.Error()), "authorization violation") || strings.Contains(err.Error(), wrong) {
				t.Errorf("the error is %q", err)
			}
		}
	})
	t.Run("one subject only", func(t *testing.T) {
		t.Parallel()
		publisher := open(t, as("few:few"))
		messages := publishertest.Messages(2)
		messages[0].Topic = "secret"
		errs := publishertest.Publish(t, publisher, messages)
		publishertest.Away(t, errs[0], true, true, "ermissions", "allow this user")
		if errs[1] != nil {
			t.Error(errs[1])
		}
		if err := publisher.Ping(t.Context()); err != nil {
			t.Errorf("a user who may not ask: %v", err)
		}
		if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
			t.Errorf("a user who may not ask: %v", err)
		}
	})
	t.Run("no answers", func(t *testing.T) {
		t.Parallel()
		publisher := open(t, as("deaf:deaf"))
		publishertest.Away(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], false, true, "acknowledgements cannot be read")
		publishertest.Away(t, publisher.Ping(t.Context()), false, true, "acknowledgements cannot be read")
	})
}

func TestAbsent(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	broker.Stop(t)
	publisher := open(t, broker.URL())
	for _, err := range publishertest.Publish(t, publisher, publishertest.Messages(2)) {
		publishertest.Fails(t, err, outbox.ClassUnavailable)
	}
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable)
	broker.Start(t)
	publishertest.Answers(t, publisher)
	publishertest.Deliver(t, publisher, publishertest.Messages(2))
}

// TestKilled kills the server while batches are under way; it keeps its files.
func TestKilled(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publishertest.Cut(t, broker, open(t, broker.URL()))
}

// TestFrozen has a server that does not read any more: a call ends with its context, even when the
// connection is stuffed and a write to it waits.
func TestFrozen(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publisher := open(t, broker.URL())
	publisher.WaitForWrites()
	publishertest.Deliver(t, publisher, publishertest.Messages(1))
	broker.Freeze(t)
	messages := publishertest.Messages(64)
	for i := range messages {
		messages[i].Payload = make([]byte, 1<<19)
	}
	errs := publishertest.Abandon(t, publisher, messages, func() {
		// They are more than the sockets hold, so that the writing stops somewhere.
		last, same := 0, 0
		await.Until(t, "the connection to be stuffed", func() bool {
			now := publisher.UnderWay()
			if same++; now != last || now == 0 {
				last, same = now, 0
			}
			return same == 20
		})
	})
	publishertest.Fails(t, errs[0], outbox.ClassUnclear, "no acknowledgement")
	if last := errs[len(errs)-1]; !errors.Is(last, outbox.ErrNotAttempted) {
		t.Errorf("the last cannot have been sent: %v", last)
	}
	broker.Thaw(t)
	publishertest.Answers(t, publisher)
	publishertest.Deliver(t, publisher, publishertest.Messages(5))
}

// TestDuplicates sends messages again, which the stream takes for duplicates unless they are
// replays or dead letters.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	messages := publishertest.Messages(20)
	publishertest.Deliver(t, open(t, broker.URL()), messages)
	publishertest.Deliver(t, open(t, broker.URL()), messages)
	want := len(messages)
	if got := len(broker.Received(t)); got != want {
		t.Errorf("%d messages arrived, want %d", got, want)
	}
	again := func(change func(*outbox.Message)) {
		t.Helper()
		for i := range messages {
			change(&messages[i])
		}
		publishertest.Deliver(t, open(t, broker.URL()), messages)
		if want += len(messages); len(broker.Received(t)) != want {
			t.Errorf("%d messages arrived, want %d", len(broker.Received(t)), want)
		}
	}
	again(func(m *outbox.Message) { m.ReplayedAt = m.CreatedAt })
	again(func(m *outbox.Message) { m.Headers = map[string]string{wire.DeadReason: "given up"} })
}

// TestClose closes while a batch is under way.
func TestClose(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publisher := open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(1))
	results := make(chan []error)
	broker.Freeze(t)
	go func() { results <- publisher.Publish(context.WithoutCancel(t.Context()), publishertest.Messages(100)) }()
	await.Until(t, "100 messages to be under way", func() bool { return publisher.UnderWay() == 100 })
	closed := make(chan error)
	go func() { closed <- publisher.Close() }()
	broker.Thaw(t)
	for _, err := range <-results {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	publishertest.Fails(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], outbox.ClassUnavailable, "closed")
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "closed")
	if got := len(broker.Received(t)); got != 101 {
		t.Errorf("%d messages arrived", got)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publishertest.Deliver(t, open(t, broker.URL()+"?window=3"), publishertest.Messages(500))
	if got := len(broker.Received(t)); got != 500 {
		t.Errorf("%d messages arrived", got)
	}
}
