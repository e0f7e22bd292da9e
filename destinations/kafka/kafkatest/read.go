package kafkatest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const patience = 30 * time.Second

// Read is all that is in a topic, partition by partition.
func Read(topic string, brokers ...string) ([]publishertest.Received, error) {
	return ReadAs(topic, kgo.SeedBrokers(brokers...))
}

// ReadAs is Read with a client of these options.
func ReadAs(topic string, options ...kgo.Opt) ([]publishertest.Received, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("read topic %s: %w", topic, err)
	}
	defer client.Close()
	ends, err := offsets(ctx, client, topic)
	if err != nil {
		return nil, fmt.Errorf("read topic %s: %w", topic, err)
	}
	wanted := make(map[int32]kgo.Offset)
	for partition, end := range ends {
		if end > 0 {
			wanted[partition] = kgo.NewOffset().At(0)
		}
	}
	left := len(wanted)
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: wanted})
	read := make(map[int32][]publishertest.Received)
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			read[r.Partition] = append(read[r.Partition], received(r))
			if r.Offset == ends[r.Partition]-1 {
				left--
			}
		})
	}
	var list []publishertest.Received
	for _, partition := range slices.Sorted(maps.Keys(read)) {
		list = append(list, read[partition]...)
	}
	return list, nil
}

// offsets are the ends of a topic's partitions.
func offsets(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	ask := kmsg.NewPtrMetadataRequest()
	name := kmsg.NewMetadataRequestTopic()
	name.Topic = kmsg.StringPtr(topic)
	ask.Topics = append(ask.Topics, name)
	metadata, err := ask.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	wanted := kmsg.NewListOffsetsRequestTopic()
	wanted.Topic = topic
	for _, t := range metadata.Topics {
		for _, p := range t.Partitions {
			partition := kmsg.NewListOffsetsRequestTopicPartition()
			partition.Partition, partition.Timestamp = p.Partition, -1
			wanted.Partitions = append(wanted.Partitions, partition)
		}
	}
	request.Topics = append(request.Topics, wanted)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	ends := make(map[int32]int64)
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			ends[p.Partition] = p.Offset
		}
	}
	return ends, nil
}

func received(r *kgo.Record) publishertest.Received {
	result := publishertest.Received{
		Topic: r.Topic, Key: string(r.Key), Payload: r.Value, Attributes: make(map[string]string, len(r.Headers)),
	}
	for _, header := range r.Headers {
		result.Attributes[header.Key] = string(header.Value)
	}
	for _, name := range []string{wire.EventID, "ce_id"} {
		if id, err := uuid.Parse(result.Attributes[name]); err == nil {
			result.ID = id
		}
	}
	return result
}
