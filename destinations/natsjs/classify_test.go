package natsjs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// streams is JetStream, as somebody who administers it sees it.
func streams(t testing.TB, broker *natstest.Broker) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(broker.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestFullStream has streams that refuse what is new: their topics wait, and others go on.
func TestFullStream(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*jetstream.StreamConfig){
		"messages":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 },
		"bytes":                func(c *jetstream.StreamConfig) { c.MaxBytes = 700 },
		"messages per subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject, c.DiscardNewPerSubject = 1, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := natstest.Bare(t, natstest.Settings{})
			config := jetstream.StreamConfig{Name: "FULL", Subjects: []string{publishertest.Topic}, Discard: jetstream.DiscardNew}
			free := config
			limit(&config)
			stream(t, broker, config)
			stream(t, broker, jetstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments"}})
			publisher := open(t, broker.URL())
			messages := publishertest.Messages(4)
			messages[3].Topic = "payments"
			errs := publishertest.Publish(t, publisher, messages)
			if errs[0] != nil || errs[3] != nil {
				t.Fatal(errs[0], errs[3])
			}
			publishertest.Away(t, errs[2], true, false, "exceeded")
			if name != "bytes" { // a smaller message may find room
				publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), true, false, "full")
			}
			publishertest.Answers(t, publisher)
			if _, err := streams(t, broker).UpdateStream(t.Context(), free); err != nil {
				t.Fatal(err)
			}
			if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
				t.Error(err)
			}
			publishertest.Deliver(t, publisher, messages)
		})
	}
}

// TestDeletedStream deletes a stream that was used before. Others go on, and so does this one when
// it is made again.
func TestDeletedStream(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	stream(t, broker, jetstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments"}})
	publisher := open(t, broker.URL())
	messages := publishertest.Messages(2)
	messages[1].Topic = "payments"
	publishertest.Deliver(t, publisher, messages)
	if err := streams(t, broker).DeleteStream(t.Context(), natstest.Stream); err != nil {
		t.Fatal(err)
	}
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Away(t, errs[0], true, true, publishertest.Topic, "?create=true")
	if errs[1] != nil {
		t.Error(errs[1])
	}
	publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), true, true, "?create=true")
	publishertest.Answers(t, publisher)
	stream(t, broker, jetstream.StreamConfig{Name: natstest.Stream, Subjects: []string{publishertest.Topic}})
	if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
		t.Error(err)
	}
	publishertest.Deliver(t, publisher, messages)
}

// TestSealedStream has a stream that takes nothing for good.
func TestSealedStream(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	config := jetstream.StreamConfig{Name: natstest.Stream, Subjects: []string{publishertest.Topic}, Sealed: true}
	if _, err := streams(t, broker).UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	publisher := open(t, broker.URL())
	publishertest.Away(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], true, true, "sealed")
	publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), true, true, "sealed")
}

// TestCreateRefused has a server that makes no stream.
func TestCreateRefused(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{Config: `accounts { SHOP { jetstream { max_streams: 1 }, users: [{user: relay, password: relay}] } }`, User: "relay", Password: "relay"})
	stream(t, broker, jetstream.StreamConfig{Name: natstest.Stream, Subjects: []string{publishertest.Topic}})
	publisher := open(t, broker.URL()+"?create=true")
	messages := publishertest.Messages(2)
	messages[0].Topic = "payments"
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Away(t, errs[0], true, true, "create stream payments", "maximum")
	if errs[1] != nil {
		t.Error(errs[1])
	}
	publishertest.Away(t, publisher.PingTopic(t.Context(), "payments"), true, true, "create stream payments")
}

// TestNoAccount has an account without JetStream.
func TestNoAccount(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{Config: `accounts { SHOP { users: [{user: relay, password: relay}] } }`, User: "relay", Password: "relay"})
	publisher := open(t, broker.URL())
	for _, err := range append(publishertest.Publish(t, publisher, publishertest.Messages(1)), publisher.Ping(t.Context())) {
		publishertest.Away(t, err, false, true, "not enabled for account")
	}
}

// TestAnswers has somebody answer as a server does that is in trouble.
func TestAnswers(t *testing.T) {
	t.Parallel()
	topicAway := func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, true, false) }
	topicMissing := func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, true, true) }
	wholeAway := func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, false, false) }
	setting := func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, false, true) }
	class := func(class outbox.Class) func(testing.TB, error) {
		return func(t testing.TB, err error) { t.Helper(); publishertest.Fails(t, err, class) }
	}
	for code, want := range map[int]func(testing.TB, error){
		10002: topicAway, 10009: topicAway, 10023: topicAway, 10028: topicAway, 10047: topicAway, 10077: topicAway,
		10118: topicAway, 10158: topicAway, 10167: topicAway, 10194: topicAway,
		10060: topicMissing, 10109: topicMissing,
		10008: wholeAway, 10039: setting, 10076: setting,
		10054: class(outbox.ClassTerminal), 10097: class(outbox.ClassTerminal),
		10999: class(outbox.ClassUnclear),
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			broker := natstest.Bare(t, natstest.Settings{NoJetStream: true})
			respond(t, broker.Connect(t), publishertest.Topic, fmt.Sprintf(`{"error":{"code":503,"err_code":%d,"description":"in trouble"}}`, code))
			want(t, publishertest.Publish(t, open(t, broker.URL()), publishertest.Messages(1))[0])
		})
	}
	t.Run("no acknowledgement", func(t *testing.T) {
		t.Parallel()
		broker := natstest.Bare(t, natstest.Settings{NoJetStream: true})
		respond(t, broker.Connect(t), publishertest.Topic, `hello`)
		publishertest.Fails(t, publishertest.Publish(t, open(t, broker.URL()), publishertest.Messages(1))[0], outbox.ClassUnclear, "no acknowledgement")
	})
}

// respond has a plain subscriber answer everything on a subject.
func respond(t testing.TB, conn *nats.Conn, subject, text string) {
	t.Helper()
	if _, err := conn.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(text)) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestNoLeader has a stream that exists and does not answer: plain subscribers stand for the
// rest of a cluster.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{NoJetStream: true})
	cluster := broker.Connect(t)
	respond(t, cluster, "$JS.API.INFO", `{}`)
	respond(t, cluster, "$JS.API.STREAM.NAMES", `{"streams":["ORDERS"]}`)
	publisher := open(t, broker.URL())
	publishertest.Away(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], true, false, `"ORDERS"`, "no leader")
	publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), true, false, "no leader")
	publishertest.Answers(t, publisher)
	respond(t, cluster, "$JS.API.STREAM.INFO.ORDERS", `{}`)
	if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
		t.Error(err)
	}
}

// TestLostOnTheWay has a server that acknowledges every message but one: that is not the message's
// fault.
func TestLostOnTheWay(t *testing.T) {
	t.Parallel()
	broker := natstest.Bare(t, natstest.Settings{NoJetStream: true})
	cluster := broker.Connect(t)
	messages := publishertest.Messages(10)
	answered := make(chan struct{}, len(messages))
	_, err := cluster.Subscribe(publishertest.Topic, func(m *nats.Msg) {
		if m.Header.Get(jetstream.MsgIDHeader) != messages[4].ID.String() {
			_ = m.Respond([]byte(`{"stream":"ORDERS","seq":1}`))
			answered <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Flush(); err != nil {
		t.Fatal(err)
	}
	publisher := open(t, broker.URL())
	errs := publishertest.Abandon(t, publisher, messages, func() {
		for range len(messages) - 1 {
			<-answered
		}
		await.Until(t, "the acknowledgements to be read", func() bool { return publisher.UnderWay() == 1 })
	})
	for i, err := range errs {
		switch {
		case i == 4:
			publishertest.Away(t, err, true, false, "no acknowledgement")
		case err != nil:
			t.Error(err)
		}
	}
}

// TestPingHangs has a server that says nothing more: a ping ends with its context.
func TestPingHangs(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publisher := open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(1))
	fresh := open(t, broker.URL())
	broker.Freeze(t)
	for _, ask := range []func(context.Context) error{
		publisher.Ping, fresh.Ping,
		func(ctx context.Context) error { return publisher.PingTopic(ctx, publishertest.Topic) },
	} {
		short, end := context.WithTimeout(t.Context(), 300*time.Millisecond) // nothing has to happen in it
		publishertest.Away(t, publishertest.Ends(t, func() error { return ask(short) }), false, false)
		end()
	}
	short, end := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer end()
	for _, err := range fresh.Publish(short, publishertest.Messages(2)) {
		if !errors.Is(err, outbox.ErrNotAttempted) {
			t.Errorf("it cannot have been sent: %v", err)
		}
	}
}
