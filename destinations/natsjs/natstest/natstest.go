// Package natstest runs a NATS server of its own for a test: a process with JetStream on
// disk, which can be killed and started again.
package natstest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// Stream is the stream that has publishertest.Topic.
const Stream = "ORDERS"

const patience = 30 * time.Second

// Broker is a server with the stream Stream ready.
type Broker struct {
	settings settings
	process  *process
}

// New starts a server with the stream Stream, and ends it with the test.
func New(t testing.TB) *Broker {
	t.Helper()
	b := Bare(t, Settings{})
	if err := b.prepare(); err != nil {
		t.Fatal(err)
	}
	return b
}

// prepare makes the stream.
func (b *Broker) prepare() error {
	conn, err := nats.Connect(b.URL())
	if err != nil {
		return fmt.Errorf("connect to the NATS server: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: Stream, Subjects: []string{publishertest.Topic}, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return fmt.Errorf("create stream %s: %w", Stream, err)
	}
	return nil
}

// Settings are of a server that is not as usual.
type Settings struct {
	// Config is more of the server's configuration, in its own words.
	Config string
	// NoJetStream leaves the streams away.
	NoJetStream bool
	// User and Password are those of the URL, and of the broker's own client.
	User, Password string
}

// Bare starts a server without any stream, and ends it with the test.
func Bare(t testing.TB, s Settings) *Broker {
	t.Helper()
	b := &Broker{settings: settings{Settings: s, Folder: t.TempDir(), Port: -1}}
	b.Start(t)
	t.Cleanup(func() { b.Stop(t) })
	return b
}

// Address is where the server listens, host:port.
func (b *Broker) Address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.settings.Port))
}

// URL returns the destination for outbox relay --to.
func (b *Broker) URL() string {
	u := url.URL{Scheme: "nats", Host: b.Address()}
	if b.settings.User != "" {
		u.User = url.UserPassword(b.settings.User, b.settings.Password)
	}
	return u.String()
}

// Connect is a client of the server, closed with the test.
func (b *Broker) Connect(t testing.TB) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(b.URL(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// Received is all that has arrived in Stream, in its order.
func (b *Broker) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	return b.ReceivedIn(t, Stream)
}

// ReceivedIn is Received for another stream.
func (b *Broker) ReceivedIn(t testing.TB, stream string) []publishertest.Received {
	t.Helper()
	conn, err := nats.Connect(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	list, err := read(conn, stream)
	if err != nil {
		t.Fatalf("read stream %s: %v", stream, err)
	}
	return list
}

func read(conn *nats.Conn, name string) ([]publishertest.Received, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	last := stream.CachedInfo().State.LastSeq
	if stream.CachedInfo().State.Msgs == 0 {
		return nil, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	// It would stay for minutes, and a test may look so often that the stream has no room for more.
	defer func() { _ = stream.DeleteConsumer(ctx, consumer.CachedInfo().Name) }()
	messages, err := consumer.Messages(jetstream.PullMaxMessages(5000))
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	var list []publishertest.Received
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("after %d messages: %w", len(list), err)
		}
		list = append(list, received(msg))
		meta, err := msg.Metadata()
		if err != nil {
			return nil, err
		}
		if meta.Sequence.Stream >= last {
			return list, nil
		}
	}
}

func received(msg jetstream.Msg) publishertest.Received {
	r := publishertest.Received{Topic: msg.Subject(), Payload: msg.Data(), Attributes: make(map[string]string)}
	for name, values := range msg.Headers() {
		if name != jetstream.MsgIDHeader && name != jetstream.ExpectedStreamHeader {
			r.Attributes[name] = values[0]
		}
	}
	r.Key = r.Attributes[wire.EventKey]
	delete(r.Attributes, wire.EventKey)
	for _, name := range []string{wire.EventID, "ce-id"} {
		if id, err := uuid.Parse(r.Attributes[name]); err == nil {
			r.ID = id
		}
	}
	return r
}

// Stop kills the server, as kill -9 does.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	if b.process == nil {
		return
	}
	if err := b.process.kill(); err != nil {
		t.Errorf("stop the NATS server: %v", err)
	}
	b.process = nil
}

// Start brings the server back, at the same address and with the same streams.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	process, port, err := start(b.settings)
	if err != nil {
		t.Fatalf("start a NATS server: %v", err)
	}
	b.process, b.settings.Port = process, port
}

// Restart kills the server and starts it with another configuration.
func (b *Broker) Restart(t testing.TB, config string) {
	t.Helper()
	b.Stop(t)
	b.settings.Config = config
	b.Start(t)
}

// Freeze stops the server from doing anything, with its connections left open, until Thaw.
func (b *Broker) Freeze(t testing.TB) {
	t.Helper()
	if err := b.process.freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Thaw(t) })
}

// Thaw ends Freeze.
func (b *Broker) Thaw(t testing.TB) {
	t.Helper()
	if b.process == nil {
		return
	}
	if err := b.process.thaw(); err != nil {
		t.Fatal(err)
	}
}
