package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	destinationEvents = 200_000
	destinationBatch  = 1000
	destinationFloor  = 0.5 // of the broker's client by itself
)

// benchDestinations drains a stream into brokers, beside the brokers' own clients that
// publish the same messages from memory.
func benchDestinations(ctx context.Context, b *bench) error {
	return b.withProgram(ctx, benchNATS, benchKafka)
}

// messages are those of a stream, as a publisher sees them.
func (s *streamLog) messages(ctx context.Context) ([]outbox.Message, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, topic, type, key, content_type, payload, created_at FROM outbox_stream ORDER BY seq`)
	if err != nil {
		return nil, fmt.Errorf("read the events: %w", err)
	}
	defer rows.Close()
	var list []outbox.Message
	for rows.Next() {
		var m outbox.Message
		if err := rows.Scan(&m.ID, &m.Topic, &m.Type, &m.Key, &m.ContentType, &m.Payload, &m.CreatedAt); err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// toBroker lets the program and the client's own publish run in turn.
func (b *bench) toBroker(
	ctx context.Context, outbox *program, name, to string,
	fresh func(ctx context.Context) error, alone func(ctx context.Context, messages []outbox.Message) error,
) error {
	log, err := b.stream(ctx)
	if err != nil {
		return err
	}
	defer log.pool.Close()
	if err := log.load(ctx, destinationEvents); err != nil {
		return err
	}
	messages, err := log.messages(ctx)
	if err != nil {
		return err
	}
	client := name + ", its client by itself"
	times, err := compete(ctx, []*contender{
		{name: "stream to " + name, events: destinationEvents, rounds: drainRounds, run: func(ctx context.Context) (time.Duration, error) {
			subscription, err := log.subscribe(ctx, pgstream.StartOldest)
			if err == nil {
				err = fresh(ctx)
			}
			if err != nil {
				return 0, err
			}
			took, err := outbox.drain(ctx, pgstream.LayoutName, log.url, "--subscription", subscription, "--to", to)
			if err != nil {
				return 0, err
			}
			return took, log.drained(ctx, subscription)
		}},
		{name: client, events: destinationEvents, rounds: drainRounds, run: func(ctx context.Context) (time.Duration, error) {
			if err := fresh(ctx); err != nil {
				return 0, err
			}
			start := time.Now()
			err := alone(ctx, messages)
			return time.Since(start), err
		}},
	})
	if err != nil {
		return err
	}
	r := quotient(times[client], times["stream to "+name])
	b.promise("stream to "+name+" / its client by itself", r >= destinationFloor, "%.2f (at least %.2f)", r, destinationFloor)
	log.pool.Close()
	return b.drop(ctx, log.url)
}

// benchNATS publishes to a JetStream with a file store.
func benchNATS(ctx context.Context, b *bench, outbox *program) error {
	dir, err := os.MkdirTemp("", "outbox-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	nats, err := startNATS(dir)
	if err != nil {
		return err
	}
	defer nats.Shutdown()
	url := nats.ClientURL()
	return b.toBroker(ctx, outbox, "NATS JetStream", url, func(ctx context.Context) error { return freshStream(ctx, url) }, natsAlone(url))
}

// freshStream makes the stream anew: it remembers the ids of two minutes, and would take the
// same messages a second time without storing them.
func freshStream(ctx context.Context, url string) error {
	return withJetStream(url, func(js jetstream.JetStream) error {
		if err := js.DeleteStream(ctx, "orders"); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("delete the stream: %w", err)
		}
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders"}, Storage: jetstream.FileStorage})
		return err
	})
}

func withJetStream(url string, work func(jetstream.JetStream) error) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	return work(js)
}

func startNATS(dir string) (*server.Server, error) {
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true})
	if err != nil {
		return nil, fmt.Errorf("start a NATS server: %w", err)
	}
	nats.Start()
	if !nats.ReadyForConnections(10 * time.Second) {
		nats.Shutdown()
		return nil, errors.New("start a NATS server: it is not ready after 10 s")
	}
	return nats, nil
}

// natsAlone publishes with the client's asynchronous publish, at its default bounds.
func natsAlone(url string) func(ctx context.Context, messages []outbox.Message) error {
	return func(ctx context.Context, messages []outbox.Message) error {
		return withJetStream(url, func(js jetstream.JetStream) error {
			acks := make([]jetstream.PubAckFuture, len(messages))
			for i := range messages {
				header := nats.Header{jetstream.MsgIDHeader: []string{messages[i].ID.String()}}
				for _, a := range wire.Attributes(&messages[i]) {
					header[a.Name] = []string{a.Value}
				}
				var err error
				if acks[i], err = js.PublishMsgAsync(&nats.Msg{Subject: messages[i].Topic, Header: header, Data: messages[i].Payload}); err != nil {
					return fmt.Errorf("publish to NATS: %w", err)
				}
			}
			return awaitAcks(ctx, acks)
		})
	}
}

func awaitAcks(ctx context.Context, acks []jetstream.PubAckFuture) error {
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return fmt.Errorf("publish to NATS: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// benchKafka publishes to a Kafka that lives in memory.
func benchKafka(ctx context.Context, b *bench, outbox *program) error {
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(8, "orders"))
	if err != nil {
		return fmt.Errorf("start a Kafka: %w", err)
	}
	defer kafka.Close()
	address := kafka.ListenAddrs()[0]
	return b.toBroker(ctx, outbox, "Kafka", "kafka://"+address, func(context.Context) error { return nil }, kafkaAlone(address))
}

// kafkaAlone publishes batch by batch, each acknowledged by all before the next.
func kafkaAlone(address string) func(ctx context.Context, messages []outbox.Message) error {
	return func(ctx context.Context, messages []outbox.Message) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(address))
		if err != nil {
			return fmt.Errorf("connect to Kafka: %w", err)
		}
		defer client.Close()
		for start := 0; start < len(messages); start += destinationBatch {
			var records []*kgo.Record
			for i := start; i < min(start+destinationBatch, len(messages)); i++ {
				m := &messages[i]
				record := &kgo.Record{Topic: m.Topic, Key: []byte(m.Key), Value: m.Payload}
				for _, a := range wire.Attributes(m) {
					record.Headers = append(record.Headers, kgo.RecordHeader{Key: a.Name, Value: []byte(a.Value)})
				}
				records = append(records, record)
			}
			if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
				return fmt.Errorf("publish to Kafka: %w", err)
			}
		}
		return nil
	}
}
